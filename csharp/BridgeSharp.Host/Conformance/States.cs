using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Host.Conformance;

/// <summary>Runs the rules of state dicts: what is in one, what loading refuses, and what it changes.</summary>
internal static class States
{
    // float.NaN has the sign bit, PyTorch's has not.
    private static readonly float NaN = BitConverter.Int32BitsToSingle(0x7FC00000);

    private static readonly Dictionary<string, Action<Outcome>> Rules = new()
    {
        ["keys"] = outcome => Describe(outcome, Net()),
        ["keys without bias"] = outcome => Describe(outcome, nn.Linear(3, 2, hasBias: false)),
        ["keys of a tied layer"] = outcome => Describe(outcome, Tied()),
        ["keys of a persistent buffer"] = outcome => Describe(outcome, WithBuffer(persistent: true)),
        ["keys of a buffer that is not persistent"] = outcome => Describe(outcome, WithBuffer(persistent: false)),
        ["keys of ModuleList"] = outcome => Describe(outcome, nn.ModuleList(nn.Linear(3, 2), nn.Linear(2, 1))),
        ["keys of ModuleList in a module"] = outcome => Describe(outcome, new Holder()),
        ["keys of ModuleDict"] = outcome => Describe(outcome, nn.ModuleDict<nn.Module>(("one", nn.Linear(3, 2)), ("two", nn.Linear(2, 1)))),
        ["keys of ParameterList"] = outcome => Describe(outcome, nn.ParameterList(new Parameter(ones(2)), new Parameter(ones(3)))),
        ["keys of ParameterDict"] = outcome => Describe(outcome, nn.ParameterDict(("one", new Parameter(ones(2))), ("two", new Parameter(ones(3))))),
        ["keys in float64"] = outcome => Describe(outcome, Net().to(float64)),
        ["keys with the prefix net."] = outcome => outcome.Texts["state"] = Outcome.Describe(Net().state_dict(prefix: "net.")),
        ["keys added to a dictionary"] = outcome => outcome.Texts["state"] = Outcome.Describe(nn.Linear(3, 2).state_dict(new() { ["other"] = ones(1) })),
        ["a missing key, strict"] = outcome => Load(outcome, Without("first.bias")),
        ["a missing key, not strict"] = outcome => Load(outcome, Without("first.bias"), strict: false),
        ["an unexpected key, strict"] = outcome => Load(outcome, With("extra.weight", ones(2))),
        ["an unexpected key, not strict"] = outcome => Load(outcome, With("extra.weight", ones(2)), strict: false),
        ["another name, not strict"] = outcome => Load(outcome, Renamed(), strict: false),
        ["an empty state, strict"] = outcome => Load(outcome, []),
        ["an empty state, not strict"] = outcome => Load(outcome, [], strict: false),
        ["a wrong shape"] = outcome => Load(outcome, With("first.weight", full([5, 7], 2f))),
        ["a wrong shape, not strict"] = outcome => Load(outcome, With("first.weight", full([5, 7], 2f)), strict: false),
        ["a wrong shape that broadcasts"] = outcome => Load(outcome, With("first.weight", full([1, 3], 2f))),
        ["a scalar in place of a vector"] = outcome => Load(outcome, With("first.bias", tensor(2f))),
        ["a vector of one in place of a scalar"] = outcome => Load(outcome, With("norm.num_batches_tracked", full([1], 2L, dtype: int64))),
        ["float64 values"] = outcome => Load(outcome, With("first.bias", full([2], 0.1, dtype: float64))),
        ["int64 values"] = outcome => Load(outcome, With("first.bias", full([2], 3L, dtype: int64))),
        ["values that are not finite"] = outcome => Load(outcome, With("first.bias", tensor(new[] { NaN, float.PositiveInfinity }))),
        ["keys in another order"] = outcome => Load(outcome, Given().Reverse().ToDictionary()),
        ["the buffers' values"] = outcome => Load(outcome, With("norm.running_mean", full([2], 0.5f))),
        ["values alias the model"] = Aliases,
        ["values require no gradient"] = outcome => outcome.Texts["requires gradient"] = Word(Net().state_dict()["first.weight"].requires_grad),
        ["loading copies"] = Copies,
        ["loading keeps the tensors"] = Keeps,
        ["loading keeps what is frozen"] = Frozen,
        ["loading keeps gradients"] = Gradients,
    };

    /// <summary>Run one case.</summary>
    public static Outcome Run(CaseRequest request)
    {
        var outcome = new Outcome();
        var rule = Rules.GetValueOrDefault(request.Name)
            ?? throw new ArgumentException($"conformance: expected a rule of {string.Join("; ", Rules.Keys)}, got {request.Name}");
        random.manual_seed(request.Seed);
        rule(outcome);
        return outcome;
    }

    private static Sequential Net() => nn.Sequential(("first", nn.Linear(3, 2)), ("norm", nn.BatchNorm1d(2)));

    private static Sequential Tied()
    {
        var layer = nn.Linear(2, 2);
        return nn.Sequential(("one", layer), ("two", layer));
    }

    private static Sequential WithBuffer(bool persistent)
    {
        var net = Net();
        net.register_buffer("extra", ones(2), persistent);
        return net;
    }

    /// <summary>A state of the net's own form, of other values.</summary>
    private static Dictionary<string, Tensor> Given() => Net().state_dict().ToDictionary(entry => entry.Key, entry => full_like(entry.Value, 2).detach());

    private static Dictionary<string, Tensor> With(string name, Tensor value) => new(Given()) { [name] = value };

    private static Dictionary<string, Tensor> Without(string name) => Given().Where(entry => entry.Key != name).ToDictionary();

    private static Dictionary<string, Tensor> Renamed() => Given().ToDictionary(entry => entry.Key.Replace("first", "head", StringComparison.Ordinal), entry => entry.Value);

    private static void Describe(Outcome outcome, nn.Module module)
    {
        using (module)
        {
            outcome.Texts["state"] = Outcome.Describe(module.state_dict());
        }
    }

    private static void Load(Outcome outcome, Dictionary<string, Tensor> state, bool strict = true)
    {
        using var net = Net();
        try
        {
            var (missing, unexpected) = net.load_state_dict(state, strict);
            outcome.Texts["result"] = $"loaded; missing {string.Join(", ", missing)}; unexpected {string.Join(", ", unexpected)}";
        }
#pragma warning disable CA1031 // The case is that it throws, whatever it throws.
        catch (Exception error)
#pragma warning restore CA1031
        {
            outcome.Texts["result"] = "refused";
            string[] odd = [.. state.Keys.Concat(Given().Keys).Where(name => !state.ContainsKey(name) || !Given().TryGetValue(name, out var own) || !own.shape.SequenceEqual(state[name].shape)).Distinct()];
            outcome.Texts["the message names each key"] = Word(odd.All(name => error.Message.Contains(name, StringComparison.Ordinal)));
        }

        foreach (var (name, tensor) in net.state_dict())
        {
            outcome.Tensors[$"after.{name}"] = Outcome.Keep(tensor);
        }
    }

    private static void Aliases(Outcome outcome)
    {
        using var net = Net();
        using var mode = no_grad();
        net.state_dict()["first.bias"].fill_(7);
        outcome.Tensors["first.bias"] = Outcome.Keep(net.get_parameter("first.bias")!);
    }

    private static void Copies(Outcome outcome)
    {
        using var net = Net();
        var state = Given();
        net.load_state_dict(state);
        state["first.bias"].fill_(7);
        outcome.Tensors["first.bias"] = Outcome.Keep(net.get_parameter("first.bias")!);
    }

    private static void Keeps(Outcome outcome)
    {
        using var net = Net();
        var parameter = net.get_parameter("first.bias")!;
        net.load_state_dict(Given());
        outcome.Tensors["first.bias"] = Outcome.Keep(parameter);
    }

    private static void Frozen(Outcome outcome)
    {
        using var net = Net();
        net.get_parameter("first.bias")!.requires_grad = false;
        net.load_state_dict(Given());
        outcome.Texts["requires gradient"] = string.Join(", ", net.named_parameters().Select(entry => $"{entry.name} {Word(entry.parameter.requires_grad)}"));
    }

    private static void Gradients(Outcome outcome)
    {
        using var net = Net();
        var parameter = net.get_parameter("first.bias")!;
        parameter.grad = full([2], 3f);
        net.load_state_dict(Given());
        outcome.Tensors["gradient"] = Outcome.Keep(net.get_parameter("first.bias")!.grad ?? zeros(0));
    }

    private sealed class Holder : nn.Module
    {
        private readonly ModuleList<nn.Module> layers = nn.ModuleList<nn.Module>(nn.Linear(3, 2), nn.Linear(2, 1));

        public Holder()
            : base(nameof(Holder)) => RegisterComponents();

        protected override void Dispose(bool disposing)
        {
            if (disposing)
            {
                layers.Dispose();
            }

            base.Dispose(disposing);
        }
    }

    private static string Word(bool flag) => flag ? "yes" : "no";
}
