using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Models;

/// <summary>Linear layers 1024-512-256-128-64-10 with ReLU between them.</summary>
/// <remarks>Shapes: <c>(N, 1024)</c> to <c>(N, 10)</c>.</remarks>
public sealed class MLP : Module<Tensor, Tensor>
{
    private readonly Linear fc1, fc2, fc3, fc4, fc5;

    /// <summary>Initialize as PyTorch's layers do, from the default generator.</summary>
    public MLP()
        : base(nameof(MLP))
    {
        fc1 = Linear(1024, 512);
        fc2 = Linear(512, 256);
        fc3 = Linear(256, 128);
        fc4 = Linear(128, 64);
        fc5 = Linear(64, 10);
        RegisterComponents();
    }

    /// <summary>Classify vectors.</summary>
    /// <param name="input">Vectors <c>(N, 1024)</c>.</param>
    /// <returns>Logits <c>(N, 10)</c>.</returns>
    public override Tensor forward(Tensor input)
    {
        var x = input;
        foreach (var layer in new[] { fc1, fc2, fc3, fc4 })
        {
            x = relu(layer.call(x));
        }

        return fc5.call(x);
    }
}
