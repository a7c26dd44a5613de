using BridgeSharp.Models.Recipes;

namespace BridgeSharp.Host;

/// <summary>A trainer that Python holds by a handle, and what goes with it.</summary>
/// <param name="trainer">The trainer.</param>
/// <param name="owned">What is disposed with it, after it.</param>
internal sealed class Session(Trainer trainer, params IReadOnlyList<IDisposable> owned) : IDisposable
{
    /// <summary>The trainer.</summary>
    public Trainer Trainer => trainer;

    /// <summary>The training job, where the handle is one's.</summary>
    public FashionLeNet Run => owned.OfType<FashionLeNet>().FirstOrDefault()
        ?? throw new ArgumentException("facade: expected the handle of a run, got that of a trainer");

    /// <summary>Dispose the trainer and what goes with it.</summary>
    public void Dispose()
    {
        trainer.Dispose();
        foreach (var item in owned)
        {
            item.Dispose();
        }
    }
}
