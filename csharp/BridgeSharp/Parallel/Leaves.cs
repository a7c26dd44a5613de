using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>The tensors of nested arguments, taken out and put back.</summary>
internal static class Leaves
{
    /// <summary>List every tensor of a tree, in order.</summary>
    public static List<Tensor> Of(object? tree) => [.. Tree.Tensors(tree)];

    /// <summary>Make the same tree with other tensors, in order.</summary>
    public static object? Put(object? tree, IEnumerable<Tensor> leaves)
    {
        using var next = leaves.GetEnumerator();
        return Filled(tree, next);
    }

    /// <summary>Fill a tree from an enumerator.</summary>
    private static object? Filled(object? tree, IEnumerator<Tensor> leaves)
    {
        if (tree is Tensor)
        {
            leaves.MoveNext();
            return leaves.Current;
        }

        var parts = Tree.Children(tree, "");
        return parts is null ? tree : Tree.Rebuild(tree!, [.. parts.Select(part => Filled(part.Value, leaves))]);
    }
}
