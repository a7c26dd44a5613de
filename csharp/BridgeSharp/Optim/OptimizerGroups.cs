using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <content>The groups of parameters.</content>
public abstract partial class Optimizer
{
    /// <inheritdoc/>
    public override IEnumerable<Parameter> parameters() => groups.SelectMany(group => group.Parameters);

    /// <summary>Add a group; options that it does not set are those of the optimizer.</summary>
    /// <param name="param_group">The optimizer's own <c>ParamGroup</c>.</param>
    /// <exception cref="ArgumentException">Another class of group, a parameter of another group, or names on one side alone.</exception>
    public override void add_param_group(TorchSharp.Modules.ParamGroup param_group)
    {
        var expected = groups[0].GetType();
        if (param_group.GetType() != expected)
        {
            throw new ArgumentException($"add_param_group: expected {expected.DeclaringType!.Name}.ParamGroup, got {param_group.GetType()}");
        }

        Add((ParamGroup)param_group);
    }

    /// <summary>Refuse an optimizer without parameters.</summary>
    internal static IReadOnlyList<Parameter> NotEmpty(IEnumerable<Parameter> parameters)
    {
        List<Parameter> own = [.. parameters];
        return own.Count > 0 ? own : throw new ArgumentException("optimizer got an empty parameter list");
    }

    /// <summary>Make the one group of parameters without options of their own.</summary>
    private protected static IEnumerable<T> One<T>(IEnumerable<Parameter> parameters, Func<IEnumerable<Parameter>, T> make)
        where T : ParamGroup
        => [make(NotEmpty(parameters))];

    /// <summary>Make the one group of named parameters; a parameter of two names has the first.</summary>
    internal static IEnumerable<T> Named<T>(
        IEnumerable<(string Name, Parameter Parameter)> parameters, Func<IEnumerable<Parameter>, IReadOnlyList<string>, T> make)
        where T : ParamGroup
    {
        var own = parameters.DistinctBy(named => named.Parameter, SameTensor.Instance).ToList();
        return One(own.Select(named => named.Parameter), tensors => make(tensors, own.ConvertAll(named => named.Name)));
    }

    /// <summary>Say what follows when a group was added.</summary>
    private protected virtual void Added(ParamGroup group)
    {
    }

    private int Index(Parameter parameter) => parameters().ToList().FindIndex(other => ReferenceEquals(other, parameter));

    private void Add(ParamGroup group)
    {
        foreach (var (index, parameter) in group.Parameters.Index())
        {
            if (is_complex(parameter))
            {
                throw new ArgumentException($"{schema.Name}: expected real parameters, got {Parity.Digest.dtype_name(parameter.dtype)} at index {index}");
            }
        }

        var named = group.has("param_names");
        if (groups.Any(other => other.has("param_names") != named))
        {
            throw new ArgumentException(
                "all optimizer param groups should be with/without names. " +
                $"cannot add param group {(named ? "with" : "without")} names to the optimizer");
        }

        if (group.Parameters.Intersect(parameters(), SameTensor.Instance).Any())
        {
            throw new ArgumentException("some parameters appear in more than one parameter group");
        }

        foreach (var (option, value) in Defaults)
        {
            group.Values.TryAdd(option, value);
        }

        groups.Add(group);
        Added(group);
    }
}
