using System.Collections;
using System.Runtime.CompilerServices;
using System.Text.Json;
using BridgeSharp.Optim;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static TorchSharp.torch;
using Optim = BridgeSharp.Optim;

namespace BridgeSharp.Tests.Spec;

/// <summary>Optimizers as the vectors describe them, and their states.</summary>
internal static class OptimizerMakers
{
    /// <summary>Groups with a rate of their own, by the name of the optimizer.</summary>
    public static readonly Dictionary<string, Func<IEnumerable<Parameter>, double, Optim.ParamGroup>> Groups = new()
    {
        ["sgd"] = (own, lr) => new Optim.SGD.ParamGroup(own, lr),
        ["adam"] = (own, lr) => new Optim.Adam.ParamGroup(own, lr),
        ["adamw"] = (own, lr) => new Optim.AdamW.ParamGroup(own, lr),
        ["rmsprop"] = (own, lr) => new Optim.RMSProp.ParamGroup(own, lr),
        ["adagrad"] = (own, lr) => new Optim.Adagrad.ParamGroup(own, lr),
        ["adamax"] = (own, lr) => new Optim.Adamax.ParamGroup(own, lr),
        ["nadam"] = (own, lr) => new Optim.NAdam.ParamGroup(own, lr),
        ["radam"] = (own, lr) => new Optim.RAdam.ParamGroup(own, lr),
        ["asgd"] = (own, lr) => new Optim.ASGD.ParamGroup(own, lr),
        ["adadelta"] = (own, lr) => new Optim.Adadelta.ParamGroup(own, lr),
        ["rprop"] = (own, lr) => new Optim.Rprop.ParamGroup(own, lr),
    };

    /// <summary>The names of all optimizers.</summary>
    public static TheoryData<string> Names => [.. Groups.Keys, "lbfgs"];

    /// <summary>Make an optimizer by its name.</summary>
    public static Optim.Optimizer Create(
        string name, IEnumerable<Parameter> parameters, Dictionary<string, object>? options = null, string reference = "2.10")
        => (Optim.Optimizer)Optimizers.create(name, parameters, options, reference);

    /// <summary>Read options.</summary>
    public static Dictionary<string, object> Options(JsonElement entry) => entry.Members("options").ToDictionary(
        member => member.Name,
        member => member.Value is { ValueKind: JsonValueKind.String } text && text.GetString() is "nan" or "inf"
            ? Vectors.Number(member.Value)
            : Vectors.Tree(member.Value)!);

    /// <summary>Read parameters.</summary>
    public static Dictionary<string, Parameter> Parameters(JsonElement entry, string member = "parameters")
    {
        var dtype = entry.GetProperty("dtype").GetString()!;
        return entry.Members(member).ToDictionary(named => named.Name, named => new Parameter(Vectors.Tensor(named.Value, dtype)));
    }

    /// <summary>Compare parameters, within the share that a case allows.</summary>
    public static void CheckParameters(JsonElement entry, string member, Dictionary<string, Parameter> parameters)
    {
        var (dtype, relative) = (entry.GetProperty("dtype").GetString()!, entry.Optional("relative")?.GetDouble() ?? 0);
        Assert.All(entry.Members(member), named => Same.Within(
            Vectors.Tensor(named.Value, dtype), parameters[named.Name].detach(), relative));
    }

    /// <summary>Compare two states: keys and their order, tuples, numbers, and tensors within a share of the largest value.</summary>
    public static void CheckState(object? expected, object? actual, double relative)
    {
        switch (expected)
        {
            case Tensor tensor:
                Same.Within(tensor, Assert.IsType<Tensor>(actual, exactMatch: false), relative);
                break;
            case IDictionary entries:
                var others = Assert.IsAssignableFrom<IDictionary>(actual);
                CheckState(entries.Keys.Cast<object>().ToList(), others.Keys.Cast<object>().ToList(), relative);
                CheckState(entries.Values.Cast<object?>().ToList(), others.Values.Cast<object?>().ToList(), relative);
                break;
            case IList items:
                var list = Assert.IsAssignableFrom<IList>(actual);
                Assert.Equal(items.Count, list.Count);
                Assert.All(items.Cast<object?>().Zip(list.Cast<object?>()), pair => CheckState(pair.First, pair.Second, relative));
                break;
            case ITuple tuple:
                var other = Assert.IsAssignableFrom<ITuple>(actual);
                Assert.Equal((Convert.ToDouble(tuple[0], null), Convert.ToDouble(tuple[1], null)), (other[0], other[1]));
                break;
            case double or long:
                var number = Convert.ToDouble(expected, null);
                Assert.InRange(Convert.ToDouble(actual, null), number - (relative * Math.Abs(number)), number + (relative * Math.Abs(number)));
                break;
            default:
                Assert.Equal(expected, actual);
                break;
        }
    }
}
