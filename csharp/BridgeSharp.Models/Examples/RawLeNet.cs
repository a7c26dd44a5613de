using TorchSharp;
using static BridgeSharp.bridge;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Models.Examples;

/// <summary>LeNet and its data-parallel training from nothing but tensors: no module, no optimizer.</summary>
public static class RawLeNet
{
    /// <summary>The weights of the layers; a bias has the first size.</summary>
    private static readonly OrderedDictionary<string, long[]> Shapes = new()
    {
        ["conv1"] = [20, 1, 3, 3],
        ["conv2"] = [50, 20, 5, 5],
        ["fc1"] = [128, 800],
        ["fc2"] = [10, 128],
    };

    /// <summary>The parameters, in order, as <see cref="LeNet"/> names them.</summary>
    public static IReadOnlyList<string> names { get; } = [.. Shapes.Keys.SelectMany(layer => new[] { $"{layer}.weight", $"{layer}.bias" })];

    /// <summary>Draw weights as He et al. 2015 do, so that values keep their size; biases are 0.</summary>
    public static IReadOnlyList<Tensor> draw_params(long seed, ScalarType dtype)
    {
        using var scope = NewDisposeScope();
        using var draw = new Generator((ulong)seed);
        List<Tensor> @params = [];
        foreach (var shape in Shapes.Values)
        {
            var deviation = Math.Sqrt(2.0 / shape.Skip(1).Aggregate(1L, (product, size) => product * size));
            @params.AddRange([randn(shape, generator: draw) * deviation, zeros(shape[0])]);
        }

        return [.. @params.Select(param => param.to(dtype).MoveToOuterDisposeScope())];
    }

    /// <summary>Classify images <c>(N, 1, 28, 28)</c> by logits <c>(N, 10)</c>.</summary>
    public static Tensor lenet(Tensor images, IReadOnlyList<Tensor> @params)
    {
        var x = avg_pool2d(relu(conv2d(images, @params[0], @params[1])), 2);
        x = avg_pool2d(relu(conv2d(x, @params[2], @params[3])), 2);
        x = relu(linear(x.flatten(1), @params[4], @params[5]));
        return linear(x, @params[6], @params[7]);
    }

    /// <summary>Sum the cross entropy over the samples.</summary>
    public static Tensor summed_loss(Tensor logits, Tensor labels) => cross_entropy(logits, labels, reduction: nn.Reduction.Sum);

    /// <summary>Copy parameters to a device, also where they are there already, and track gradients.</summary>
    public static IReadOnlyList<Tensor> get_params(IReadOnlyList<Tensor> @params, Device device)
        => [.. @params.Select(param => param.detach().to(device, copy: true).requires_grad_())];

    /// <summary>Add the tensors of all devices, in their order, and put the sum in the place of each.</summary>
    public static void allreduce(IReadOnlyList<Tensor> data)
    {
        foreach (var other in data.Skip(1))
        {
            data[0].add_(other.to(data[0].device));
        }

        foreach (var other in data.Skip(1))
        {
            other.copy_(data[0]);
        }
    }

    /// <summary>Split a batch: one shard per device, fewer where there are fewer samples.</summary>
    public static IReadOnlyList<(Tensor Images, Tensor Labels)> split_batch(Tensor images, Tensor labels, IReadOnlyList<Device> devices)
        => scatter((images, labels), devices);

    /// <summary>Update the parameters of every device from one batch, and return the mean loss.</summary>
    /// <remarks>The gradients, summed over the whole batch, stay on every device until the next one.</remarks>
    public static double train_batch(
        Tensor images, Tensor labels, IReadOnlyList<IReadOnlyList<Tensor>> device_params, IReadOnlyList<Device> devices, double lr)
    {
        using var scope = NewDisposeScope();
        foreach (var @params in device_params)
        {
            Clear(@params);
        }

        var shards = split_batch(images, labels, devices).Zip(device_params);
        var losses = shards.Select(pair => summed_loss(lenet(pair.First.Images, pair.Second), pair.First.Labels)).ToList();
        foreach (var loss in losses)
        {
            loss.backward();
        }

        var gathered = device_params.Select(gradients).ToList();
        for (var index = 0; index < names.Count; index++)
        {
            allreduce([.. gathered.Select(own => own[index])]);
        }

        foreach (var @params in device_params)
        {
            sgd(@params, lr, labels.size(0));
        }

        return losses.Sum(loss => loss.to(float64).item<double>()) / labels.size(0);
    }

    /// <summary>List the gradients.</summary>
    public static IReadOnlyList<Tensor> gradients(IReadOnlyList<Tensor> @params)
        => [.. @params.Select(param => param.grad).OfType<Tensor>()];

    /// <summary>Step down the gradient of the mean: the summed one, divided by the batch.</summary>
    public static void sgd(IReadOnlyList<Tensor> @params, double lr, long batch_size)
    {
        using var mode = no_grad();
        foreach (var (param, gradient) in @params.Zip(gradients(@params)))
        {
            param.sub_(gradient * lr / batch_size);
        }
    }

    /// <summary>Set gradients to 0, which is what a device without samples adds.</summary>
    private static void Clear(IReadOnlyList<Tensor> @params)
    {
        foreach (var param in @params)
        {
            param.grad = zeros_like(param);
        }
    }
}
