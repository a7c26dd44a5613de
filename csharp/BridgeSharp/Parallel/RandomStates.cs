using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>A module that draws random numbers in its forward, so that its replicas must run in turn.</summary>
public interface IDraws
{
    /// <summary>Whether it draws in its present mode.</summary>
    bool draws { get; }
}

/// <summary>Gives each replica a random stream of its own; replica 0 stays on the caller's.</summary>
/// <remarks>
/// Replica i starts with the stream of <c>manual_seed(initial_seed() + i)</c> and keeps it from step to step: a run is
/// reproducible, its replicas draw differently, and both languages draw alike. TorchSharp reads and sets the stream of
/// the CPU only: on GPUs replicas draw from the GPU's. Spec: R20.1, R20.2.
/// </remarks>
public sealed class RandomStates : IDisposable
{
    private readonly Tensor[] states;
    private Tensor? outer;

    /// <summary>Seed the streams of all replicas but the first.</summary>
    /// <param name="devices">One per replica.</param>
    public RandomStates(IReadOnlyList<Device> devices)
    {
        var seed = random.initial_seed();
        states = [.. devices.Select((_, index) => Seeded(seed + index))];
    }

    /// <summary>Tell whether a module draws random numbers in its present mode, as far as its layers tell.</summary>
    /// <remarks>
    /// Those are dropout, RReLU, fractional pooling, recurrent layers, attention and transformers with dropout; a module of
    /// your own says so with <see cref="IDraws"/>. Spec: R20.3.
    /// </remarks>
    /// <param name="module">The module.</param>
    /// <returns>Whether one of its layers draws.</returns>
    internal static bool draws(nn.Module module)
        => module.named_modules().Select(named => named.module).Prepend(module).Any(Draws);

    /// <summary>Put the stream of a replica in the place of the caller's.</summary>
    /// <param name="index">The replica.</param>
    public void enter(int index)
    {
        if (index > 0)
        {
            outer = caller();
            random.set_rng_state(states[index]);
        }
    }

    /// <summary>Keep the stream of a replica and give the caller's back.</summary>
    /// <param name="index">The replica.</param>
    public void leave(int index)
    {
        if (index > 0)
        {
            states[index].Dispose();
            states[index] = caller();
            random.set_rng_state(outer!);
            outer!.Dispose();
        }
    }

    /// <summary>Dispose the states.</summary>
    public void Dispose()
    {
        foreach (var state in states)
        {
            state.Dispose();
        }
    }

    private static Tensor caller() => random.get_rng_state().DetachFromDisposeScope();

    /// <summary>Return the caller's states and those of the replicas, for <see cref="restore"/>.</summary>
    /// <returns>The states, the caller's to dispose.</returns>
    public Tensor[] snapshot() => [caller(), .. states.Skip(1).Select(state => state.clone().DetachFromDisposeScope())];

    /// <summary>Tell whether anything has drawn since a snapshot.</summary>
    /// <param name="snapshot">The states of then.</param>
    /// <returns>Whether any state is another.</returns>
    public bool moved(Tensor[] snapshot)
    {
        using var present = caller();
        return !states.Skip(1).Prepend(present).Zip(snapshot, (now, then) => now.bytes.SequenceEqual(then.bytes)).All(same => same);
    }

    /// <summary>Go back to a snapshot.</summary>
    /// <param name="snapshot">The states of then.</param>
    public void restore(Tensor[] snapshot)
    {
        random.set_rng_state(snapshot[0]);
        for (var index = 1; index < states.Length; index++)
        {
            states[index].copy_(snapshot[index]);
        }
    }

    private static Tensor Seeded(long seed)
    {
        using var generator = new Generator((ulong)seed);
        return generator.get_state().DetachFromDisposeScope();
    }

    private static bool Draws(nn.Module layer) => layer switch
    {
        IDraws own => own.draws,
        Dropout dropout => dropout.training && dropout.p > 0,
        Dropout1d dropout => dropout.training && dropout.p > 0,
        Dropout2d dropout => dropout.training && dropout.p > 0,
        Dropout3d dropout => dropout.training && dropout.p > 0,
        AlphaDropout dropout => dropout.training && dropout.p > 0,
        FeatureAlphaDropout dropout => dropout.training && dropout.p > 0,
        RReLU => layer.training,
        FractionalMaxPool2d or FractionalMaxPool3d => true,
        _ => layer.training && NativeDraws.InTraining(layer),
    };
}
