using BridgeSharp.Models.Recipes;
using BridgeSharp.Trace;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Host;

/// <summary>What Python holds by a handle: a trainer, a training job, a user's own loop, or the state that an example left.</summary>
internal sealed class Session : IDisposable
{
    private readonly Trainer? trainer;
    private readonly OrderedDictionary<string, Tensor>? state;
    private readonly IReadOnlyList<IDisposable> owned;
    private Recorder? recorder;

    /// <summary>Hold a trainer.</summary>
    /// <param name="trainer">The trainer.</param>
    /// <param name="owned">What is disposed with it, after it.</param>
    public Session(Trainer trainer, params IReadOnlyList<IDisposable> owned)
    {
        this.trainer = trainer;
        this.owned = owned;
    }

    /// <summary>Hold a state.</summary>
    /// <param name="state">Names and tensors.</param>
    public Session(OrderedDictionary<string, Tensor> state)
    {
        this.state = state;
        owned = [.. state.Values];
    }

    /// <summary>Hold a user's own loop.</summary>
    /// <param name="loop">The loop, which is disposed with the session.</param>
    public Session(UserLoop loop) => owned = [loop];

    /// <summary>The trainer, where the handle is one's.</summary>
    public Trainer Trainer => trainer ?? throw new ArgumentException("facade: expected the handle of a trainer, got that of another object");

    /// <summary>The user's own loop, where the handle is one's.</summary>
    public UserLoop Loop => owned.OfType<UserLoop>().FirstOrDefault()
        ?? throw new ArgumentException("facade: expected the handle of a loop, got that of another object");

    /// <summary>The training job, where the handle is one's.</summary>
    public FashionLeNet Run => owned.OfType<FashionLeNet>().FirstOrDefault()
        ?? throw new ArgumentException("facade: expected the handle of a run, got that of a trainer");

    /// <summary>Return the state: names and tensors (aliases).</summary>
    public OrderedDictionary<string, Tensor> State() => state ?? owned.OfType<UserLoop>().FirstOrDefault()?.State() ?? Trainer.state_dict();

    /// <summary>Load a state, strictly.</summary>
    public void Load(IReadOnlyDictionary<string, Tensor> given)
    {
        if (trainer is not null)
        {
            trainer.load_state_dict(given);
        }
        else
        {
            Loop.Load(given);
        }
    }

    /// <summary>Begin a trace of the trainer, or end the one that there is.</summary>
    /// <param name="path">The folder of the trace, or null to end it.</param>
    /// <param name="activationGradients">Take down the gradients of the outputs of layers too.</param>
    /// <param name="full">A pattern of names whose tensors are kept whole.</param>
    /// <param name="fullStep">Only in this step.</param>
    public void Record(string? path, bool activationGradients = false, string? full = null, int? fullStep = null)
    {
        recorder?.Dispose();
        recorder = path is null ? null : new Recorder(path, Trainer, activation_gradients: activationGradients, full: full, full_steps: fullStep is { } step ? [step] : null);
    }

    /// <summary>Run the model once without training, and take it down where there is a trace.</summary>
    /// <param name="inputs">Its only argument.</param>
    public void Forward(Tensor inputs)
    {
        using var quiet = no_grad();
        Trainer.model.eval();
        recorder?.inputs(inputs);
        try
        {
            var outputs = ((nn.Module<Tensor, Tensor>)Trainer.model).call(inputs);
            recorder?.loss(outputs);
            recorder?.step();
        }
        catch (Exception error)
        {
            recorder?.fail(error);
            throw;
        }
    }

    /// <summary>Dispose the trainer and what goes with it.</summary>
    public void Dispose()
    {
        recorder?.Dispose();
        trainer?.Dispose();
        foreach (var item in owned)
        {
            item.Dispose();
        }
    }
}
