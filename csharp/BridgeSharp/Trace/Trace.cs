using BridgeSharp.Trace;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp;

public static partial class bridge
{
    /// <summary>Begin a trace of a loop of one's own; disposing the recorder ends it.</summary>
    /// <remarks>Spec: R30.1.</remarks>
    /// <param name="path">The folder of the trace; a trace in it is replaced.</param>
    /// <param name="model">A module.</param>
    /// <param name="optimizer">Of the module, if it has one.</param>
    /// <returns>The recorder.</returns>
    public static Recorder trace(string path, nn.Module model, torch.optim.Optimizer? optimizer = null) => new(path, model, optimizer);

    /// <summary>Begin a trace of a trainer; disposing the recorder ends it.</summary>
    /// <remarks>Spec: R30.1.</remarks>
    /// <param name="path">The folder of the trace; a trace in it is replaced.</param>
    /// <param name="model">A trainer, whose replicas and optimizers are recorded.</param>
    /// <returns>The recorder.</returns>
    public static Recorder trace(string path, Trainer model) => new(path, model);
}
