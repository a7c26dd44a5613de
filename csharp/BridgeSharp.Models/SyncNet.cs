using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Models;

/// <summary>Linear layers 8-16-4 with synchronized batch normalization, ReLU and dropout between them.</summary>
/// <remarks>The first has no bias: the normalization takes it off again. Shapes: <c>(N, 8)</c> to <c>(N, 4)</c>.</remarks>
public sealed class SyncNet : Module<Tensor, Tensor>
{
    private readonly Linear fc1;
    private readonly SyncBatchNorm norm;
    private readonly Dropout drop;
    private readonly Linear fc2;

    /// <summary>Initialize as PyTorch's layers do, from the default generator.</summary>
    /// <param name="p">The share that dropout drops.</param>
    public SyncNet(double p = 0.25)
        : base(nameof(SyncNet))
    {
        fc1 = Linear(8, 16, hasBias: false);
        norm = new SyncBatchNorm(16);
        drop = Dropout(p);
        fc2 = Linear(16, 4);
        RegisterComponents();
    }

    /// <summary>Classify vectors.</summary>
    /// <param name="input">Vectors <c>(N, 8)</c>.</param>
    /// <returns>Logits <c>(N, 4)</c>.</returns>
    public override Tensor forward(Tensor input) => fc2.call(drop.call(relu(norm.call(fc1.call(input)))));
}
