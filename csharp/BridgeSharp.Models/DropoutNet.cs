using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Models;

/// <summary>Linear layers 8-16-4 with ReLU and dropout between them.</summary>
/// <remarks>Shapes: <c>(N, 8)</c> to <c>(N, 4)</c>.</remarks>
public sealed class DropoutNet : Module<Tensor, Tensor>
{
    private readonly Linear fc1;
    private readonly Dropout drop;
    private readonly Linear fc2;

    /// <summary>Initialize as PyTorch's layers do, from the default generator.</summary>
    public DropoutNet()
        : base(nameof(DropoutNet))
    {
        fc1 = Linear(8, 16);
        drop = Dropout(0.5);
        fc2 = Linear(16, 4);
        RegisterComponents();
    }

    /// <summary>Classify vectors.</summary>
    /// <param name="input">Vectors <c>(N, 8)</c>.</param>
    /// <returns>Logits <c>(N, 4)</c>.</returns>
    public override Tensor forward(Tensor input) => fc2.call(drop.call(relu(fc1.call(input))));
}
