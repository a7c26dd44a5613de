using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>What the model is now, for its replicas.</summary>
internal static class Follow
{
    /// <summary>Give every replica what replica 0 is now: its values, its modes, and what is frozen.</summary>
    /// <remarks>
    /// So a model that is loaded, clamped, frozen or put in another mode takes its replicas along. Values are written past
    /// autograd: the graphs of earlier forwards stay valid, and where the model itself has changed since, that of replica 0
    /// refuses. Spec: R4.11, R25.4.
    /// </remarks>
    /// <param name="replicas">Modules with the same state.</param>
    /// <param name="buffers">With <c>"first"</c> they follow too; those that are not persistent never do.</param>
    /// <exception cref="InvalidOperationException">Keys that are missing, unexpected, or of another shape or dtype, listed.</exception>
    public static void follow(IReadOnlyList<nn.Module> replicas, string buffers = "first")
    {
        using var scope = NewDisposeScope();
        using var mode = no_grad();
        var state = StateDict.Of(replicas[0]);
        var left = buffers == "first" ? [] : replicas[0].named_buffers().Select(buffer => buffer.name).ToHashSet();
        foreach (var replica in replicas.Skip(1))
        {
            StateDict.Check(replica, state);
            foreach (var (name, own) in StateDict.Of(replica).Where(entry => !left.Contains(entry.Key)))
            {
                // Another tensor on the same memory, whose changes autograd counts apart.
                empty(0, own.dtype, own.device).set_(own).copy_(state[name]);
            }

            foreach (var (module, first) in Registered.Modules(replica).Zip(Registered.Modules(replicas[0])))
            {
                if (module.training != first.training)
                {
                    NativeModule.SetMode(module, first.training);
                }
            }

            foreach (var (parameter, leader) in Registered.Parameters(replica).Zip(Registered.Parameters(replicas[0])))
            {
                parameter.requires_grad = leader.requires_grad;
            }
        }
    }
}
