using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>Watches the steps of a trainer and changes nothing; this one does not even look.</summary>
public class Observer
{
    /// <summary>See the shard of a replica, before its forward.</summary>
    /// <param name="inputs">Its inputs.</param>
    /// <param name="targets">Its targets.</param>
    /// <param name="replica">The replica.</param>
    public virtual void inputs(object? inputs, object? targets = null, int replica = 0)
    {
    }

    /// <summary>See the loss of a replica, after the forwards of all.</summary>
    /// <param name="loss">The loss.</param>
    /// <param name="replica">The replica.</param>
    public virtual void loss(Tensor loss, int replica = 0)
    {
    }

    /// <summary>See the gradients after the backward, the reduction or the clipping.</summary>
    /// <param name="phase">After which.</param>
    public virtual void gradients(string phase = "backward")
    {
    }

    /// <summary>See the end of a step.</summary>
#pragma warning disable CA1716 // A keyword of another language, but the name in both of these.
    public virtual void step()
    {
    }
#pragma warning restore CA1716

    /// <summary>See a step undone, which is done again.</summary>
    public virtual void undo()
    {
    }

    /// <summary>See a step fail.</summary>
    /// <param name="failure">Of what.</param>
    public virtual void fail(Exception failure)
    {
    }

    /// <summary>Show an observer how a step ends.</summary>
    internal static T Watched<T>(Observer observer, Func<T> step)
    {
        T result;
        try
        {
            result = step();
        }
        catch (Exception error)
        {
            observer.fail(error);
            throw;
        }

        observer.step();
        return result;
    }
}
