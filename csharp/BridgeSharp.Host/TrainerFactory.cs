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

    private static readonly Dictionary<string, Func<Tensor, Tensor, nn.Reduction, Tensor>> Losses = new()
    {
        ["cross_entropy"] = (outputs, targets, reduction) => functional.cross_entropy(outputs, targets, reduction: reduction),
        ["mse_loss"] = (outputs, targets, reduction) => functional.mse_loss(outputs, targets, reduction),
        ["l1_loss"] = (outputs, targets, reduction) => functional.l1_loss(outputs, targets, reduction),
        ["nll_loss"] = (outputs, targets, reduction) => functional.nll_loss(outputs, targets, reduction: reduction),
    };

    /// <summary>Make the model, its optimizer and the trainer.</summary>
    public static Session Create(JsonObject arguments)
    {
        var dtype = Choose("dtype", Dtypes, (string)arguments["dtype"]!);
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
        var loss = Loss((string)arguments["loss"]!, type);
        var model = ModelTypes.Create(type, arguments["arguments"]!).to(devices[0], dtype);
        if ((bool?)arguments["mixed_precision"] ?? false)
        {
            bridge.mixed_precision(model);
        }

        var options = Given(arguments["optimizer"]!.AsObject());
        var name = (string)arguments["optimizer"]!["name"]!;
        var reference = (string)arguments["reference"]!;
        var training = Training(arguments["training"]?.AsObject() ?? [], reference);
        var reduction = training.reduction == "mean" ? nn.Reduction.Mean : nn.Reduction.Sum;
        var trainer = new Trainer(
            model,
            parameters => Optimizers.create(name, parameters, options, reference),
            (outputs, targets) => (loss((Tensor)outputs, (Tensor)targets, reduction), Count(training, (Tensor)targets)),
            devices,
            training);
        return new Session(trainer, model);
    }

    /// <summary>Choose a loss by its name in PyTorch, or find the user's own beside the model.</summary>
    private static Func<Tensor, Tensor, nn.Reduction, Tensor> Loss(string name, Type model)
    {
        if (!name.Contains('.', StringComparison.Ordinal))
        {
            return Choose("loss", Losses, name);
        }

        var own = UserLoss.Find(name, model.Assembly);
        return (outputs, targets, _) => own(outputs, targets);
    }

    /// <summary>Count the targets that cross-entropy does not ignore, where the reduction asks for it.</summary>
    private static double Count(TrainerOptions training, Tensor targets)
        => training.reduction == "count" ? targets.ne(-100).sum().item<long>() : 1;

    /// <summary>Read options that are given beside a name.</summary>
    private static Dictionary<string, object> Given(JsonObject named)
        => named.Where(option => option.Key != "name" && option.Value is not null)
            .ToDictionary(option => option.Key, option => Scalars.Read(option.Value)!);

    /// <summary>Make the function that makes a scheduler, where one is named.</summary>
    private static Func<optim.Optimizer, optim.lr_scheduler.LRScheduler>? Scheduler(JsonNode? named, string reference)
        => named is null ? null : optimizer => Schedulers.create((string)named["name"]!, optimizer, Given(named.AsObject())!, reference);

    private static TrainerOptions Training(JsonObject given, string reference)
    {
        var options = new TrainerOptions();
        return options with
        {
            reduction = (string?)given["reduction"] ?? options.reduction,
            mode = (string?)given["mode"] ?? options.mode,
            buffers = (string?)given["buffers"] ?? options.buffers,
            accumulate = (int?)given["accumulate"] ?? options.accumulate,
            clip_norm = (double?)given["clip_norm"],
            clip_value = (double?)given["clip_value"],
            scheduler = Scheduler(given["scheduler"], reference),
            scaling = given["scaling"] is { } scaling ? new LinearScaling((double)scaling["factor"]!, (int?)scaling["warm_up"] ?? 0) : null,
        };
    }

    private static T Choose<T>(string what, Dictionary<string, T> choices, string name)
        => choices.TryGetValue(name, out var choice)
            ? choice
            : throw new ArgumentException($"trainer: expected {what} {string.Join(", ", choices.Keys)}, got {name}");
}
