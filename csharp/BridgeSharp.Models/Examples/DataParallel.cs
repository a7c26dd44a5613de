using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;
using SGD = BridgeSharp.Optim.SGD;

namespace BridgeSharp.Models.Examples;

/// <summary>The drop-in module: ResNet-18 in DataParallel, with the loop of one device.</summary>
public static class DataParallelExample
{
    private const int Batch = 16, Batches = 2, Side = 16, Classes = 10;
    private const double Rate = 0.02;

    /// <summary>Train ResNet-18 with its loop unchanged, only its net wrapped, and compare with one device.</summary>
    /// <remarks>Spec: R23.2.</remarks>
    /// <param name="setting">What to run.</param>
    /// <param name="say">Takes progress, line by line.</param>
    /// <returns>
    /// The losses, the module's state, and how the evaluated outputs of replicas and of one device differ: not at all
    /// but for rounding, for in evaluation batch norm has fixed statistics.
    /// </returns>
    public static Result Run(Setting setting, Action<string> say)
    {
        random.manual_seed(setting.seed);
        var module = new ResNet18();
        module.apply(Initialize);
        module.to(setting.scalar_type);
        using var net = new DataParallel<Tensor, Tensor>(module, [.. Enumerable.Repeat(CPU, setting.replicas)]);
        using var optimizer = new SGD(net.parameters(), lr: Rate);
        using var draw = new Generator((ulong)setting.seed);
        using var images = randn([Batches, Batch, 1, Side, Side], generator: draw).to(setting.scalar_type);
        using var labels = randint(Classes, [Batches, Batch], generator: draw);
        var losses = new List<double>();
        for (var step = 1; step <= setting.steps; step++)
        {
            using var scope = NewDisposeScope();
            optimizer.zero_grad();
            var loss = nn.functional.cross_entropy(net.call(images[step % Batches]), labels[step % Batches]);
            loss.backward();
            optimizer.step();
            losses.Add(loss.to(float64).item<double>());
            say(FormattableString.Invariant($"step {step} of {setting.steps}: loss {losses[^1]:F4}"));
        }

        var numbers = new OrderedDictionary<string, double>
        {
            ["first loss"] = losses[0],
            ["last loss"] = losses[^1],
            ["difference"] = Difference(net, images[0]),
        };
        return Result.Of(losses, numbers, StateDict.Of(module));
    }

    /// <summary>Compare the outputs of all replicas with those of the module alone, in evaluation.</summary>
    private static double Difference(DataParallel<Tensor, Tensor> net, Tensor images)
    {
        using var scope = NewDisposeScope();
        using var mode = no_grad();
        net.eval();
        return (net.call(images) - net.module.call(images)).abs().max().to(float64).item<double>();
    }

    /// <summary>Draw the weights of linear and convolution layers from normal(0, 0.01).</summary>
    private static void Initialize(nn.Module layer)
    {
        var weight = layer switch
        {
            Linear linear => linear.weight,
            Conv2d convolution => convolution.weight,
            _ => null,
        };
        if (weight is not null)
        {
            nn.init.normal_(weight, std: 0.01);
        }
    }
}
