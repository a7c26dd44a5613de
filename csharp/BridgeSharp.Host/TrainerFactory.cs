using System.Text.Json.Nodes;
using BridgeSharp.Optim;
using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;
using functional = TorchSharp.torch.nn.functional;

namespace BridgeSharp.Host;

/// <summary>Makes a trainer from what Python says of it.</summary>
internal static class TrainerFactory
{
    private static readonly Dictionary<string, ScalarType> Dtypes = new() { ["float32"] = float32, ["float64"] = float64 };

    private static readonly Dictionary<string, Func<Tensor, Tensor, Tensor>> Losses = new()
    {
        ["cross_entropy"] = (outputs, targets) => functional.cross_entropy(outputs, targets),
        ["mse_loss"] = (outputs, targets) => functional.mse_loss(outputs, targets),
        ["l1_loss"] = (outputs, targets) => functional.l1_loss(outputs, targets),
        ["nll_loss"] = (outputs, targets) => functional.nll_loss(outputs, targets),
    };

    /// <summary>Make the model, its optimizer and the trainer.</summary>
    public static Session Create(JsonObject arguments)
    {
        var dtype = Choose("dtype", Dtypes, (string)arguments["dtype"]!);
        var loss = Choose("loss", Losses, (string)arguments["loss"]!);
        var devices = Devices.Read("trainer", [.. arguments["devices"]!.AsArray().Select(name => (string)name!)]);
        if (arguments["threads"] is { } threads)
        {
            set_num_threads((int)threads);
        }

        if (arguments["seed"] is { } seed)
        {
            random.manual_seed((long)seed);
        }

        var type = ModelTypes.Find((string)arguments["type"]!, (string?)arguments["assembly"]);
        var model = ModelTypes.Create(type, [.. arguments["arguments"]!.AsArray().Select(Scalars.Read)]).to(devices[0], dtype);
        var options = arguments["optimizer"]!.AsObject().Where(option => option.Key != "name" && option.Value is not null)
            .ToDictionary(option => option.Key, option => Scalars.Read(option.Value)!);
        var name = (string)arguments["optimizer"]!["name"]!;
        var reference = (string)arguments["reference"]!;
        var optimizer = Optimizers.create(name, model.parameters(), options, reference);
        return new Session(new Trainer(model, optimizer, loss, devices), optimizer, model);
    }

    private static T Choose<T>(string what, Dictionary<string, T> choices, string name)
        => choices.TryGetValue(name, out var choice)
            ? choice
            : throw new ArgumentException($"trainer: expected {what} {string.Join(", ", choices.Keys)}, got {name}");
}
