using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Tests.Parity;

/// <summary>Linear layers 8-16-4 with dropout; <c>turn</c> sees shards of more than two samples alone, and <c>spare</c> none.</summary>
/// <remarks>Shapes: <c>(N, 8)</c> to <c>(N, 4)</c>.</remarks>
internal sealed class GroupedNet : Module<Tensor, Tensor>
{
    private readonly Linear fc1 = Linear(8, 16);
    private readonly Dropout drop = Dropout(0.5);
    private readonly Linear turn = Linear(16, 16);
    private readonly Linear fc2 = Linear(16, 4);
    private readonly Linear spare = Linear(2, 2);

    /// <summary>Initialize as PyTorch's layers do, from the default generator.</summary>
    public GroupedNet()
        : base(nameof(GroupedNet))
        => RegisterComponents();

    /// <summary>The parameters that an optimizer gets first, and those of a group with a rate of its own.</summary>
    public (IEnumerable<Parameter> First, IEnumerable<Parameter> Second) Groups
        => ([.. fc1.parameters(), .. spare.parameters()], [.. turn.parameters(), .. fc2.parameters()]);

    /// <summary>Classify vectors.</summary>
    /// <param name="input">Vectors <c>(N, 8)</c>.</param>
    /// <returns>Logits <c>(N, 4)</c>.</returns>
    public override Tensor forward(Tensor input)
    {
        var hidden = drop.call(relu(fc1.call(input)));
        return fc2.call(input.size(0) > 2 ? relu(turn.call(hidden)) : hidden);
    }
}
