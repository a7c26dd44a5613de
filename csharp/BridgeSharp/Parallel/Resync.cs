using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp;

public static partial class bridge
{
    /// <summary>Let every replica take replica 0's state through <c>load_state_dict</c>: parameters and buffers.</summary>
    /// <remarks>Spec: R6.1, R6.2.</remarks>
    /// <param name="replicas">Modules with the same state.</param>
    /// <exception cref="ArgumentException">No replicas.</exception>
    /// <exception cref="InvalidOperationException">Keys that are missing, unexpected or of another shape, listed.</exception>
    public static void resync(IReadOnlyList<nn.Module> replicas)
    {
        if (replicas.Count == 0)
        {
            throw new ArgumentException("resync: expected at least 1 replica, got 0");
        }

        if (replicas.Count == 1)
        {
            return;
        }

        var state = StateDict.Of(replicas[0]);
        foreach (var replica in replicas.Skip(1))
        {
            StateDict.Load(replica, state);
        }
    }
}
