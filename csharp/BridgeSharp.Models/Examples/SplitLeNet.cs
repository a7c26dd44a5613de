using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;

namespace BridgeSharp.Models.Examples;

/// <summary>LeNet from the same raw parameters, split by layers and inside layers.</summary>
public static class SplitLeNet
{
    private const int MicroBatches = 4;

    /// <summary>Make the whole net.</summary>
    public static Module<Tensor, Tensor> undivided(IReadOnlyList<Tensor> @params)
    {
        var (conv1, conv2, fc1, fc2) = Layers(@params);
        return Sequential(Blocks(conv1, conv2, fc1, fc2));
    }

    /// <summary>Split it into stages, one per device, of which there are four at most.</summary>
    public static Module<Tensor, Tensor> by_layers(IReadOnlyList<Tensor> @params, IReadOnlyList<Device> devices)
    {
        var (conv1, conv2, fc1, fc2) = Layers(@params);
        var blocks = Blocks(conv1, conv2, fc1, fc2);
        var count = Math.Min(devices.Count, blocks.Length);
        var bounds = Enumerable.Range(0, count + 1).Select(stage => blocks.Length * stage / count).ToList();
        var stages = bounds.Zip(bounds.Skip(1), (start, end) => Sequential(blocks[start..end]));
        return new Pipeline<Tensor, Tensor>([.. stages], [.. devices.Take(count)], MicroBatches);
    }

    /// <summary>Split each layer, into one part per device, but no more than the first has channels.</summary>
    /// <remarks>The last layer takes its inputs in parts, as the one before it leaves its outputs.</remarks>
    public static Module<Tensor, Tensor> inside_layers(IReadOnlyList<Tensor> @params, IReadOnlyList<Device> devices)
    {
        var (conv1, conv2, fc1, fc2) = Layers(@params);
        using var whole = Sequential(conv1, conv2, fc1, fc2);
        Device[] places = [.. devices.Take((int)conv1.out_channels)];
        return Sequential(Blocks(
            new ChannelParallelConv2d(conv1, places),
            new ChannelParallelConv2d(conv2, places),
            new ColumnParallelLinear(fc1, places),
            new RowParallelLinear(fc2, places)));
    }

    /// <summary>Update a net from one batch, and return the mean loss; the summed gradients stay.</summary>
    public static double train_net(Module<Tensor, Tensor> net, Tensor images, Tensor labels, double lr)
    {
        using var scope = NewDisposeScope();
        net.zero_grad(set_to_none: true);
        var loss = RawLeNet.summed_loss(net.call(images), labels);
        loss.backward();
        RawLeNet.sgd([.. net.parameters()], lr, labels.size(0));
        return loss.to(float64).item<double>() / labels.size(0);
    }

    /// <summary>Put what has no parameters between the layers.</summary>
    private static Module<Tensor, Tensor>[] Blocks(
        Module<Tensor, Tensor> conv1, Module<Tensor, Tensor> conv2, Module<Tensor, Tensor> fc1, Module<Tensor, Tensor> fc2)
        =>
        [
            Sequential(conv1, ReLU(), AvgPool2d(2)),
            Sequential(conv2, ReLU(), AvgPool2d(2), Flatten()),
            Sequential(fc1, ReLU()),
            Sequential(fc2),
        ];

    /// <summary>Make layers of raw parameters.</summary>
    private static (Conv2d, Conv2d, Linear, Linear) Layers(IReadOnlyList<Tensor> @params)
    {
        var layers = (Conv2d(1, 20, 3), Conv2d(20, 50, 5), Linear(800, 128), Linear(128, 10));
        var own = Sequential(layers.Item1, layers.Item2, layers.Item3, layers.Item4).to(@params[0].dtype);
        StateDict.Load(own, StateDict.Of(own).Keys.Zip(@params).ToDictionary(pair => pair.First, pair => pair.Second));
        return layers;
    }
}
