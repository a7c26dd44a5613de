using System.Text.Json;
using BridgeSharp.Optim;
using static TorchSharp.torch;
using Adagrad = BridgeSharp.Optim.Adagrad;
using Adam = BridgeSharp.Optim.Adam;
using Parameter = TorchSharp.Modules.Parameter;
using SGD = BridgeSharp.Optim.SGD;

namespace BridgeSharp.Tests.Spec;

/// <summary>A case of the vectors of schedulers, and what it is about.</summary>
internal sealed class SchedulerCase(JsonElement entry)
{
    private static readonly Dictionary<string, Func<double, double>> Functions = new()
    {
        ["half"] = n => Math.Pow(0.5, n),
        ["third"] = n => 1 / (n + 3),
        ["cube"] = n => n * n * n / 8,
    };

    /// <summary>What a step is given: nothing, one or two values.</summary>
    public IReadOnlyList<JsonElement?> Steps { get; } = entry.Optional("steps") is { } steps
        ? [.. steps.EnumerateArray()]
        : [.. Enumerable.Repeat<JsonElement?>(null, 24)];

    /// <summary>The rates after the construction and after each step.</summary>
    public IReadOnlyList<double[]> Rates { get; } = Rows(entry.GetProperty("expected").GetProperty("lr"));

    /// <summary>The momentum then, where it changes.</summary>
    public IReadOnlyList<double[]>? Momentums { get; } = entry.GetProperty("expected").Optional("momentum") is { } rows ? Rows(rows) : null;

    /// <summary>What is saved after some steps.</summary>
    public JsonElement? Saved { get; } = entry.Optional("saved");

    /// <summary>Whether the case fails in the end.</summary>
    public bool Fails { get; } = entry.Optional("raises") is not null;

    /// <summary>Whether the case is a whole run of SGD whose groups have only their rates before.</summary>
    public bool FromTheBeginning
        => !Fails && entry.GetProperty("optimizer").GetString() == "sgd" && entry.Items("groups").All(group => group.EnumerateObject().Count() == 1);

    /// <summary>Make an optimizer with the groups of the case, or with those that were saved.</summary>
    public optim.Optimizer Optimizer(JsonElement? groups = null)
    {
        var entries = (groups ?? entry.GetProperty("groups")).EnumerateArray().ToList();
        var rates = entries.ConvertAll(group => group.GetProperty("lr").GetDouble());
        optim.Optimizer optimizer = entry.GetProperty("optimizer").GetString() switch
        {
            "sgd" => new SGD(rates.Select(rate => new SGD.ParamGroup([Parameter()], rate, 0.9))),
            "adam" => new Adam(rates.Select(rate => new Adam.ParamGroup([Parameter()], rate))),
            _ => new Adagrad(rates.Select(rate => new Adagrad.ParamGroup([Parameter()], rate))),
        };
        foreach (var (group, given) in optimizer.ParamGroups.Zip(entries))
        {
            foreach (var (name, value) in given.EnumerateObject().Select(member => (member.Name, member.Value)))
            {
                if (name == "momentum" && value.ValueKind != JsonValueKind.Null)
                {
                    MomentumEntry.Set(group, group is optim.IBetas, value.GetDouble());
                }
                else if (name is not ("lr" or "momentum"))
                {
                    GroupEntries.Set(group, name, value.GetDouble());
                }
            }
        }

        return optimizer;
    }

    /// <summary>Make the scheduler.</summary>
    public Scheduler Make(optim.Optimizer optimizer)
    {
        var options = entry.Members("options").ToDictionary(option => option.Name, option => Option(option.Name, option.Value));
        return Schedulers.create(entry.GetProperty("scheduler").GetString()!, optimizer, options, entry.GetProperty("reference").GetString()!);
    }

    /// <summary>Make one step.</summary>
    public static void Step(Scheduler scheduler, JsonElement? argument)
    {
        if (argument is not { ValueKind: not JsonValueKind.Null } given)
        {
            scheduler.step();
            return;
        }

        switch (scheduler)
        {
            case ReduceLROnPlateau plateau when given.ValueKind == JsonValueKind.Array:
                plateau.step(given[0].GetDouble(), given[1].GetInt32());
                break;
            case ReduceLROnPlateau plateau:
                plateau.step(given.GetDouble());
                break;
            case CosineAnnealingWarmRestarts restarts:
                restarts.step(given.GetDouble());
                break;
            default:
                scheduler.step(given.GetInt32());
                break;
        }
    }

    /// <summary>List the momentum of the groups, or the first beta; null where there is none.</summary>
    public static double[] Momentum(optim.Optimizer optimizer) => [.. optimizer.ParamGroups.Select(group => group switch
    {
        optim.IBetas held => held.Betas.Item1,
        optim.IMomentum held => held.Momentum,
        _ => 0,
    })];

    /// <summary>Read a state.</summary>
    public static object? Tree(JsonElement value) => value.ValueKind switch
    {
        JsonValueKind.Array => value.EnumerateArray().Select(Tree).ToList(),
        JsonValueKind.Object => value.EnumerateObject().ToDictionary(member => member.Name, member => Tree(member.Value)),
        JsonValueKind.Number when value.TryGetInt64(out var whole) => whole,
        JsonValueKind.Number => value.GetDouble(),
        JsonValueKind.String => value.GetString() switch
        {
            "inf" => double.PositiveInfinity,
            "-inf" => double.NegativeInfinity,
            var text => text,
        },
        JsonValueKind.Null => null,
        _ => value.GetBoolean(),
    };

    /// <summary>Make an optimizer of TorchSharp's with two groups.</summary>
    public static optim.Optimizer TorchSharps() => optim.SGD(
        [new TorchSharp.Modules.SGD.ParamGroup([Parameter()], 0.1, 0.9), new TorchSharp.Modules.SGD.ParamGroup([Parameter()], 0.3, 0.9)], 1);

    private static Parameter Parameter() => new(zeros(1));

    private static List<double[]> Rows(JsonElement rows)
        => [.. rows.EnumerateArray().Select(row => row.EnumerateArray().Select(item => item.ValueKind == JsonValueKind.Null ? 0 : item.GetDouble()).ToArray())];

    /// <summary>Read an option: a function is one of an epoch, or for a scale of a number.</summary>
    private static object? Option(string name, JsonElement value) => value.ValueKind switch
    {
        JsonValueKind.Array => value.EnumerateArray().Select(item => Option(name, item)).ToList(),
        JsonValueKind.Object when value.Optional("function") is { } function => name == "scale_fn"
            ? Functions[function.GetString()!]
            : new Func<int, double>(epoch => Functions[function.GetString()!](epoch)),
        JsonValueKind.Object => value.EnumerateObject().ToDictionary(member => member.Name, member => Option(member.Name, member.Value)),
        _ => Tree(value),
    };
}
