using System.Reflection;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Mutants;

/// <summary>The tensors of a port, registered or not.</summary>
internal static class Weights
{
    private const BindingFlags Fields = BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic;

    /// <summary>List what is registered, then what is in fields alone, each tensor once.</summary>
    public static OrderedDictionary<string, Tensor> Of(nn.Module module)
    {
        var state = new OrderedDictionary<string, Tensor>();
        var seen = new HashSet<IntPtr>();
        Collect(module, "");
        return state;

        void Collect(nn.Module owner, string prefix)
        {
            var registered = owner.named_parameters().Select(item => (item.name, tensor: (Tensor)item.parameter));
            foreach (var (name, tensor) in registered.Concat(owner.named_buffers().Select(item => (item.name, item.buffer))))
            {
                Add(prefix + name, tensor);
            }

            foreach (var field in owner.GetType().GetFields(Fields).Where(field => field.DeclaringType!.Assembly == typeof(Weights).Assembly))
            {
                if (field.GetValue(owner) is Tensor { requires_grad: true } tensor)
                {
                    Add(prefix + field.Name, tensor);
                }
                else if (field.GetValue(owner) is nn.Module child)
                {
                    Collect(child, $"{prefix}{field.Name}.");
                }
            }
        }

        void Add(string name, Tensor tensor)
        {
            if (!state.ContainsKey(name) && seen.Add(tensor.Handle))
            {
                state.Add(name, tensor);
            }
        }
    }
}
