using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Trace;

/// <summary>Takes down what a training loop does, step by step.</summary>
/// <remarks>
/// A loop of one's own says where it is: <see cref="inputs"/> begins a step, <see cref="loss"/> comes after the forward,
/// <see cref="gradients"/> after the backward, and <see cref="step"/> after the update. A trainer says so itself.
/// Observation changes nothing: a run that is recorded has the bits of one that is not. A layer that is run by
/// <c>forward</c> instead of <c>call</c> is observed where the port was loaded by <see cref="PortAssembly"/>; else the
/// trace says that it was not. Spec: R30.1, R30.3, R30.4, R30.5, R30.6.
/// </remarks>
public sealed class Recorder : Observer, IDisposable
{
    private readonly Trainer? trainer;
    private readonly IReadOnlyList<nn.Module> replicas;
    private readonly int every;
    private readonly LayerCalls calls;
    private readonly Writer writer;
    private readonly Scribe scribe;
    private readonly IReadOnlyList<Action> hooks;
    private readonly string unseen;

    /// <summary>Write the beginning of the trace, and hook the layers.</summary>
    /// <param name="path">The folder of the trace; a trace in it is replaced.</param>
    /// <param name="model">A module.</param>
    /// <param name="optimizer">Of the module, if it has one.</param>
    /// <param name="every">Record every so many steps, from the first on.</param>
    /// <param name="full">Keep the tensors whole whose name, such as <c>fc1.*</c>, matches this pattern.</param>
    /// <param name="full_steps">Only in these steps.</param>
    /// <param name="activation_gradients">Take down the gradients of the outputs of layers too.</param>
    /// <exception cref="ArgumentException"><paramref name="every"/> below 1.</exception>
    public Recorder(
        string path,
        nn.Module model,
        optim.Optimizer? optimizer = null,
        int every = 1,
        string? full = null,
        IReadOnlyCollection<int>? full_steps = null,
        bool activation_gradients = false)
        : this(path, [model], optimizer is null ? [] : [optimizer], every, new Keeper(full, full_steps), activation_gradients)
    {
    }

    /// <summary>Write the beginning of the trace, hook the layers of all replicas, and watch the trainer.</summary>
    /// <param name="path">The folder of the trace; a trace in it is replaced.</param>
    /// <param name="model">A trainer, whose replicas and optimizers are recorded.</param>
    /// <param name="every">Record every so many steps, from the first on.</param>
    /// <param name="full">Keep the tensors whole whose name, such as <c>fc1.*</c>, matches this pattern.</param>
    /// <param name="full_steps">Only in these steps.</param>
    /// <param name="activation_gradients">Take down the gradients of the outputs of layers too.</param>
    /// <exception cref="ArgumentException"><paramref name="every"/> below 1.</exception>
    public Recorder(
        string path,
        Trainer model,
        int every = 1,
        string? full = null,
        IReadOnlyCollection<int>? full_steps = null,
        bool activation_gradients = false)
        : this(path, model.replicas, model.optimizers, every, new Keeper(full, full_steps), activation_gradients)
    {
        trainer = model;
        trainer.observer = this;
    }

    private Recorder(
        string path,
        IReadOnlyList<nn.Module> replicas,
        IReadOnlyList<optim.Optimizer> optimizers,
        int every,
        Keeper keeper,
        bool activationGradients)
    {
        if (every < 1)
        {
            throw new ArgumentException($"trace: expected every of at least 1, got {every}");
        }

        this.replicas = replicas;
        this.every = every;
        calls = new LayerCalls(replicas, keeper, activationGradients);
        writer = new Writer(path, TrainingState.About(replicas));
        scribe = new Scribe(writer, keeper, optimizers);
        scribe.Configuration(replicas[0]);
        foreach (var (index, replica) in replicas.Index())
        {
            scribe.State("init", index, replica);
        }

        hooks = calls.attach();
        var reason = PortAssembly.Reason(replicas[0].GetType().Assembly);
        unseen = "no call of the layer was seen in this step" + (reason is null ? "" : $": {reason}");
    }

    /// <summary>Begin a step, and take down its batch; the forward is observed from here to the loss.</summary>
    /// <param name="inputs">Any tree of tensors.</param>
    /// <param name="targets">Any tree of tensors.</param>
    /// <param name="replica">Whose they are.</param>
    public override void inputs(object? inputs, object? targets = null, int replica = 0)
    {
        if (On)
        {
            scribe.Tree("scatter", replica, "input", "inputs", inputs);
            scribe.Tree("scatter", replica, "input", "targets", targets);
            calls.step = scribe.Number;
        }
    }

    /// <summary>Take down the forward, and the loss.</summary>
    /// <param name="loss">A tensor.</param>
    /// <param name="replica">Whose it is.</param>
    public override void loss(Tensor loss, int replica = 0)
    {
        if (On)
        {
            calls.step = null;
            scribe.Write(calls.take());
            scribe.Tree("loss", replica, "loss", "loss", loss);
        }
    }

    /// <summary>Take down the gradients of the parameters.</summary>
    /// <param name="phase"><c>"backward"</c>, of all replicas; or <c>"reduce"</c> or <c>"clip"</c>, of replica 0.</param>
    public override void gradients(string phase = "backward")
    {
        scribe.Write(calls.take_gradients());
        foreach (var (index, replica) in On ? replicas.Index() : [])
        {
            if (index == 0 || phase == "backward")
            {
                scribe.Gradients(phase, index, replica);
            }
        }
    }

    /// <summary>Take down what the update left, and end the step.</summary>
    public override void step()
    {
        if (On)
        {
            scribe.Write(calls.take());
            foreach (var (index, replica) in replicas.Index())
            {
                scribe.State(index == 0 ? "step" : "resync", index, replica);
                scribe.Unseen("forward", index, "activation", calls.unseen(index), unseen);
            }
        }

        EndStep();
    }

    /// <summary>Say that the step so far was undone, and is done again.</summary>
    public override void undo()
    {
        calls.take();
        calls.take_gradients();
        scribe.Value("forward", 0, "configuration", "step", "undone", true);
    }

    /// <summary>Take down an exception that ended the step.</summary>
    /// <param name="failure">The exception.</param>
    public override void fail(Exception failure)
    {
        scribe.Write(calls.take());
        scribe.Value("step", 0, "failure", "exception", value: failure.Message);
        EndStep();
    }

    /// <summary>End the trace and let go of the model; again is harmless.</summary>
    public void Dispose()
    {
        if (trainer is not null)
        {
            trainer.observer = new Observer();
        }

        writer.Close(scribe.Number);
        foreach (var remove in hooks)
        {
            remove();
        }
    }

    /// <summary>Whether this step is recorded.</summary>
    private bool On => scribe.Number % every == 0;

    /// <summary>Go on to the next step.</summary>
    private void EndStep()
    {
        calls.step = null;
        calls.reset();
        scribe.EndStep();
    }
}
