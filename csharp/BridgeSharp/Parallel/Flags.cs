using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>What is frozen, and what is in which mode.</summary>
internal static class Flags
{
    /// <summary>Give every replica the modes and the frozen parameters of replica 0.</summary>
    /// <remarks>So a model that is frozen, unfrozen or put in another mode in part takes its replicas along. Spec: R4.11.</remarks>
    public static void Follow(IReadOnlyList<nn.Module> replicas)
    {
        foreach (var replica in replicas.Skip(1))
        {
            foreach (var (own, module) in Registered.Modules(replica).Zip(Registered.Modules(replicas[0])))
            {
                if (own.training != module.training)
                {
                    NativeModule.SetMode(own, module.training);
                }
            }

            foreach (var (parameter, first) in Registered.Parameters(replica).Zip(Registered.Parameters(replicas[0])))
            {
                parameter.requires_grad = first.requires_grad;
            }
        }
    }
}
