using TorchSharp;
using static BridgeSharp.bridge;
using static BridgeSharp.Models.Examples.RawLeNet;
using static BridgeSharp.Models.Examples.SplitLeNet;
using static TorchSharp.torch;

namespace BridgeSharp.Models.Examples;

/// <summary>LeNet from raw tensors, split in three ways: by data, by layers, inside layers.</summary>
public static class FromScratch
{
    private const double Rate = 0.03;

    /// <summary>Train LeNet split by data, by layers and inside layers, and undivided, on the same batches.</summary>
    /// <remarks>Spec: R23.2.</remarks>
    /// <param name="setting">What to run; there are as many parts as replicas, or as a net of this size has.</param>
    /// <param name="say">Takes progress, line by line.</param>
    /// <returns>
    /// The losses and the state of the replicas, their accuracy, the last loss of each way, and how far its first
    /// gradients are from those of the undivided net, as a share of the largest.
    /// </returns>
    public static Result Run(Setting setting, Action<string> say)
    {
        using var scope = NewDisposeScope();
        var (data, test) = Images.read(setting, say);
        Device[] devices = [.. Enumerable.Repeat(CPU, setting.replicas)];
        var @params = draw_params(setting.seed, setting.scalar_type);
        var device_params = devices.Select(device => get_params(@params, device)).ToList();
        using var pipeline = by_layers(@params, devices);
        using var split = inside_layers(@params, devices);
        using var whole = undivided(@params);
        var nets = new OrderedDictionary<string, nn.Module<Tensor, Tensor>>
        {
            ["by layers"] = pipeline,
            ["inside layers"] = split,
            ["undivided"] = whole,
        };
        List<double> losses = [];
        List<(string Way, double Loss)> last = [];
        IReadOnlyList<(string Way, double Share)>? apart = null;
        foreach (var (images, labels) in Images.batches(data, setting.seed).Take(setting.steps))
        {
            losses.Add(train_batch(images, labels, device_params, devices, Rate));
            last = [.. nets.Select(net => (net.Key, train_net(net.Value, images, labels, Rate)))];
            apart ??= Differences(device_params[0], nets);
            say(FormattableString.Invariant($"step {losses.Count} of {setting.steps}: loss {losses[^1]:F4}"));
        }

        var numbers = new OrderedDictionary<string, double>
        {
            ["first loss"] = losses[0],
            ["last loss"] = losses[^1],
        };
        last.ForEach(own => numbers.Add($"last loss, {own.Way}", own.Loss));
        numbers.Add("accuracy", Accuracy(device_params[0], test));
        foreach (var (way, share) in apart!)
        {
            numbers.Add($"difference, {way}", share);
        }

        var state = names.Zip(device_params[0]).Select(pair => KeyValuePair.Create(pair.First, pair.Second));
        return Result.Of(losses, numbers, new OrderedDictionary<string, Tensor>(state));
    }

    /// <summary>Measure how far the gradients of each way are from the undivided net's at most.</summary>
    private static IReadOnlyList<(string Way, double Share)> Differences(
        IReadOnlyList<Tensor> @params, OrderedDictionary<string, nn.Module<Tensor, Tensor>> nets)
    {
        using var scope = NewDisposeScope();
        var found = new OrderedDictionary<string, IReadOnlyList<Tensor>> { ["by data"] = gradients(@params) };
        foreach (var (way, net) in nets)
        {
            found[way] = [.. whole_state(net, gradients: true).Values];
        }

        found.Remove("undivided", out var expected);
        var largest = expected!.Max(Largest);
        return [.. found.Select(own => (own.Key, own.Value.Zip(expected!, (one, other) => Largest(one - other)).Max() / largest))];
    }

    private static double Largest(Tensor values) => values.abs().max().to(float64).item<double>();

    /// <summary>Count what is classified right, as a share.</summary>
    private static double Accuracy(IReadOnlyList<Tensor> @params, (Tensor Images, Tensor Labels) test)
    {
        using var scope = NewDisposeScope();
        using var mode = no_grad();
        return lenet(test.Images, @params).argmax(1).eq(test.Labels).to(float64).mean().item<double>();
    }
}
