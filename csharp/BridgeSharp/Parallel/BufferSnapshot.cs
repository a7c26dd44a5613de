using System.Collections.Concurrent;
using System.Reflection;
using TorchSharp;
using TorchSharp.Utils;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>The buffers of modules: which there are, in which fields, and their values.</summary>
/// <remarks>A forward may change a buffer, or put another tensor in its place. It lives inside a dispose scope. Spec: R21.1.</remarks>
internal sealed class BufferSnapshot
{
    private static readonly ConcurrentDictionary<Type, FieldInfo[]> Fields = [];

    private readonly List<(OrderedDict<string, (Tensor, bool)> Place, List<(string, (Tensor, bool))> Held)> places = [];
    private readonly List<(nn.Module Module, FieldInfo Field, Tensor Buffer)> fields = [];
    private readonly Dictionary<Tensor, Tensor> values = new(ReferenceEqualityComparer.Instance);

    /// <summary>Keep the buffers of modules, those that are not persistent included.</summary>
    public BufferSnapshot(IEnumerable<nn.Module> modules)
    {
        foreach (var module in modules.SelectMany(Registered.Modules))
        {
            var place = Registered.Place(module);
            if (place.Count > 0)
            {
                places.Add((place, [.. place]));
                Keep(module, place.Values.Select(entry => entry.Item1));
            }
        }
    }

    /// <summary>Give the buffers back: the same tensors, but for those that were disposed meanwhile.</summary>
    public void Restore()
    {
        using var mode = no_grad();
        var restored = new Dictionary<Tensor, Tensor>(ReferenceEqualityComparer.Instance);
        foreach (var (buffer, value) in values)
        {
            restored[buffer] = buffer.IsInvalid ? value.DetachFromDisposeScope() : buffer.copy_(value);
        }

        foreach (var (place, held) in places)
        {
            place.clear();
            held.ForEach(entry => place.Add(entry.Item1, (restored[entry.Item2.Item1], entry.Item2.Item2)));
        }

        fields.ForEach(held => held.Field.SetValue(held.Module, restored[held.Buffer]));
    }

    private void Keep(nn.Module module, IEnumerable<Tensor> buffers)
    {
        foreach (var buffer in buffers)
        {
            values.TryAdd(buffer, buffer.detach().clone());
        }

        foreach (var field in Fields.GetOrAdd(module.GetType(), TensorFields))
        {
            if (field.GetValue(module) is Tensor held && values.ContainsKey(held))
            {
                fields.Add((module, field, held));
            }
        }
    }

    private static FieldInfo[] TensorFields(Type type) => [.. ObjectLinks.FieldsOf(type).Where(field => field.FieldType == typeof(Tensor))];
}
