using System.Reflection;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>The fields of one object, kept so that they can be given back; tensors are copied.</summary>
internal sealed class FieldSnapshot
{
    /// <summary>All fields of an instance that one class declares.</summary>
    public const BindingFlags Own =
        BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.DeclaredOnly;

    private readonly object target;
    private readonly List<(FieldInfo Field, object? Value)> fields;

    /// <summary>Keep the fields of an object.</summary>
    public FieldSnapshot(object target)
    {
        this.target = target;
        fields = [.. Classes(target.GetType()).SelectMany(type => type.GetFields(Own))
            .Select(field => (field, Kept(field.GetValue(target))))];
    }

    private FieldSnapshot(object target, List<(FieldInfo Field, object? Value)> fields)
    {
        this.target = target;
        this.fields = fields;
    }

    /// <summary>Keep the options of an optimizer's groups and the state of its parameters.</summary>
    public static IEnumerable<FieldSnapshot> Of(optim.Optimizer optimizer)
    {
        var state = Classes(optimizer.GetType()).Select(type => type.GetField("_state", Own)).FirstOrDefault(field => field is not null);
        var held = state?.GetValue(optimizer) as IEnumerable<(nint, OptimizerState)> ?? [];
        var options = optimizer.ParamGroups.OfType<ParamGroup>().Select(group => (object)group.Options);
        return options.Concat(held.Select(entry => entry.Item2)).Select(item => new FieldSnapshot(item));
    }

    /// <summary>Give an optimizer the options and the state of another one of its class.</summary>
    public static void Copy(optim.Optimizer source, optim.Optimizer target)
    {
        foreach (var (given, taken) in Of(source).Zip(Of(target)))
        {
            new FieldSnapshot(taken.target, given.fields).Restore();
        }
    }

    /// <summary>Give the fields back.</summary>
    public void Restore()
    {
        foreach (var (field, value) in fields)
        {
            if (value is Parameter)
            {
                continue;
            }

            if (value is Tensor kept && field.GetValue(target) is Tensor present && present.Handle != 0)
            {
                present.copy_(kept);
            }
            else
            {
                field.SetValue(target, (value as Tensor)?.DetachFromDisposeScope() ?? value);
            }
        }
    }

    /// <summary>Copy a tensor that is the object's own; its parameter is not.</summary>
    private static object? Kept(object? value) => value is Tensor tensor and not Parameter ? tensor.detach().clone() : value;

    private static IEnumerable<Type> Classes(Type type)
    {
        for (var own = type; own is not null && own != typeof(object); own = own.BaseType)
        {
            yield return own;
        }
    }
}
