using System.Reflection;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>The objects that a module leads to, and those of them that a copy of it needs anew.</summary>
/// <remarks>
/// What the module holds is its own and copied. What its functions captured is copied where it leads back to a module,
/// parameter or buffer of it, and shared where it does not: a hook acts on the copy, and still writes into the caller's
/// list. Spec: R4.4, R4.5.
/// </remarks>
internal sealed class ObjectGraph
{
    private readonly Dictionary<object, Node> nodes = new(ReferenceEqualityComparer.Instance);
    private readonly Dictionary<Type, List<object?>> statics = [];
    private readonly Stack<Node> pending = new();

    /// <summary>Walk from a module to everything that it leads to.</summary>
    public ObjectGraph(nn.Module root)
    {
        Find(root, root.GetType().Name);
        var first = pending.Peek();
        while (pending.TryPop(out var node))
        {
            foreach (var link in ObjectLinks.Of(node.Value).Where(link => link.Target is not null && !IsShared(link.Target)))
            {
                var target = Find(link.Target!, node.Path + link.Label);
                target.Holders.Add(node);
                if (!link.Captured)
                {
                    node.Held.Add(target);
                }
            }
        }

        var own = Closure([first], node => node.Held);
        var tensors = Registered.Tensors(root).Select(named => (object)named.Tensor).ToHashSet(ReferenceEqualityComparer.Instance);
        var leading = Closure(own.Where(node => node.Value is nn.Module || tensors.Contains(node.Value)), node => node.Holders);
        var copied = Closure(own.Union(leading), node => node.Holders.Where(holder => ObjectLinks.IsFunction(holder.Value)));
        Copied = [.. copied.OrderBy(node => node.Index).Select(node => (node.Value, node.Path))];
    }

    /// <summary>What a copy needs anew, in the order of discovery, and how to get there from the module.</summary>
    public IReadOnlyList<(object Value, string Path)> Copied { get; }

    private Node Find(object value, string path)
    {
        if (!nodes.TryGetValue(value, out var node))
        {
            node = new Node(value, path, nodes.Count);
            nodes.Add(value, node);
            pending.Push(node);
        }

        return node;
    }

    private static HashSet<Node> Closure(IEnumerable<Node> start, Func<Node, IEnumerable<Node>> next)
    {
        HashSet<Node> found = [.. start];
        var open = new Stack<Node>(found);
        while (open.TryPop(out var node))
        {
            next(node).Where(found.Add).ToList().ForEach(open.Push);
        }

        return found;
    }

    /// <summary>Tell whether all replicas share an object: one without state, or one that its class keeps in a static field.</summary>
    private bool IsShared(object value)
    {
        if (ObjectLinks.IsConstant(value))
        {
            return true;
        }

        if (value is nn.Module or Tensor or Delegate)
        {
            return false;
        }

        var type = value.GetType();
        if (!statics.TryGetValue(type, out var known))
        {
            statics[type] = known = [.. ObjectLinks.Classes(type)
                .SelectMany(own => own.GetFields(BindingFlags.Static | BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.DeclaredOnly))
                .Where(field => !field.IsLiteral && field.FieldType.IsAssignableFrom(type))
                .Select(field => field.GetValue(null))];
        }

        return known.Exists(held => ReferenceEquals(held, value));
    }

    private sealed class Node(object value, string path, int index)
    {
        public object Value { get; } = value;

        public string Path { get; } = path;

        public int Index { get; } = index;

        public List<Node> Holders { get; } = [];

        public List<Node> Held { get; } = [];
    }
}
