using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>The caller's grad mode, inference mode and number of intra-op threads, for the threads of its replicas.</summary>
/// <remarks>
/// Other modes, such as the default dtype, are those of the process; TorchSharp has no autocast. Spec: R3.4.
/// Source: torch/nn/parallel/parallel_apply.py
/// </remarks>
internal sealed class ThreadModes
{
    private readonly bool grad = is_grad_enabled();
    private readonly bool inference = is_inference_mode_enabled();
    private readonly int threads = get_num_threads();

    /// <summary>Put this thread in the modes until the result is disposed.</summary>
    public IDisposable Entered()
    {
        if (get_num_threads() != threads)
        {
            set_num_threads(threads);
        }

        var outer = inference ? inference_mode() : null;
        return new Modes(outer, set_grad_enabled(grad));
    }

    private sealed record Modes(IDisposable? Outer, IDisposable Inner) : IDisposable
    {
        public void Dispose()
        {
            Inner.Dispose();
            Outer?.Dispose();
        }
    }
}
