using BridgeSharp.Models;
using BridgeSharp.Models.Examples;
using TorchSharp;
using Xunit;
using static BridgeSharp.Models.Examples.RawLeNet;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>The functions of the example that trains from raw tensors.</summary>
[Collection(nameof(Serial))]
public sealed class FromScratchTests
{
    /// <summary>The model takes them by their names, and returns the same logits. Spec: R23.1.</summary>
    [Fact]
    public void Raw_parameters_are_those_of_the_model()
    {
        using var scope = NewDisposeScope();
        var @params = draw_params(1, float64);
        using var model = new LeNet().to(float64);
        StateDict.Load(model, names.Zip(@params).ToDictionary(pair => pair.First, pair => pair.Second));
        var images = randn(2, 1, 28, 28, dtype: float64);
        Same.Trees(lenet(images, @params), model.call(images));
    }

    /// <summary>Parameters that are on the device already are copied too. Spec: R23.3.</summary>
    [Fact]
    public void Get_params_copies()
    {
        using var scope = NewDisposeScope();
        var @params = draw_params(1, float64);
        var copies = get_params(@params, CPU);
        Assert.All(copies, copy => Assert.True(copy.requires_grad && copy.is_leaf));
        Same.Trees(@params, copies);
        foreach (var copy in copies)
        {
            copy.detach().zero_();
        }

        Assert.True(@params[0].ne(0).all().item<bool>());
    }

    /// <summary>Each tensor becomes the sum of all. Spec: R23.3.</summary>
    [Fact]
    public void Allreduce_leaves_the_sum_everywhere()
    {
        using var scope = NewDisposeScope();
        Tensor[] data = [tensor([1.0, 2.0]), tensor([0.5, 0.0]), tensor([-4.0, 1.0])];
        allreduce(data);
        Assert.All(data, own => Assert.Equal([-2.5, 3.0], own.data<double>().ToArray()));
    }

    /// <summary>Images and labels of different numbers are refused. Spec: R23.3.</summary>
    [Fact]
    public void Split_batch_names_what_does_not_fit()
    {
        using var scope = NewDisposeScope();
        var error = Assert.Throws<ArgumentException>(() => split_batch(zeros(3, 1, 28, 28), zeros(2), [CPU]));
        Assert.StartsWith("scatter: expected inputs[1] to have the batch size", error.Message, StringComparison.Ordinal);
    }

    /// <summary>However many devices have samples, all end as one device does. Spec: R23.3.</summary>
    [Theory]
    [InlineData(2)]
    [InlineData(5)]
    public void Devices_without_samples_follow(int samples)
    {
        using var scope = NewDisposeScope();
        var @params = draw_params(1, float64);
        var (images, labels) = (randn(samples, 1, 28, 28, dtype: float64), arange(samples));
        var (alone, together) = (Trained(1), Trained(3));
        var largest = alone.Max(Largest);
        Assert.All(alone.Zip(together), pair => Assert.True(Largest(pair.First - pair.Second) <= 1e-12 * largest));

        List<Tensor> Trained(int count)
        {
            var devices = Enumerable.Repeat(CPU, count).ToList();
            var device_params = devices.Select(device => get_params(@params, device)).ToList();
            var first = train_batch(images, labels, device_params, devices, 0.01);
            Assert.True(train_batch(images, labels, device_params, devices, 0.01) < first);
            Assert.All(device_params, other => Same.Trees(device_params[0], other));
            return [.. device_params[0], .. gradients(device_params[0])];
        }
    }

    /// <summary>More replicas than channels: all ways end with one loss. Spec: R23.3.</summary>
    [Fact]
    public void Every_way_trains_alike()
    {
        using var scope = NewDisposeScope();
        var numbers = FromScratch.Run(new Setting { steps = 2, replicas = 21, dtype = "float64" }, _ => { }).numbers;
        var last = numbers.Where(number => number.Key.StartsWith("last loss", StringComparison.Ordinal)).Select(number => number.Value).ToList();
        Assert.Equal(4, last.Count);
        Assert.InRange(last.Max() - last.Min(), 0, 1e-12);
        Assert.True(last[0] < numbers["first loss"]);
    }

    private static double Largest(Tensor values) => values.abs().max().item<double>();
}
