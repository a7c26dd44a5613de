using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Copying the tensors of a module.</summary>
[Collection(nameof(Serial))]
public sealed class TensorCopierTests : IDisposable
{
    private readonly DisposeScope scope = NewDisposeScope();

    /// <summary>Tensors that share storage do so in the copy, and not with the original. Spec: R4.7.</summary>
    [Fact]
    public void Shared_storage_stays_shared()
    {
        var flat = arange(6, dtype: float32);
        var transposed = new Parameter(flat.detach().narrow(0, 2, 4).reshape(2, 2).t());
        var model = new Holder((flat, transposed));

        var (copied, view) = ((Tensor, Parameter))Copy(model).Held!;
        Same.Trees(transposed, view);
        view.detach().zero_();

        Assert.Equal(new float[] { 0, 1, 0, 0, 0, 0 }, copied.data<float>().ToArray());
        Assert.Equal(new float[] { 0, 1, 2, 3, 4, 5 }, flat.data<float>().ToArray());
        (view.sum() * 2).backward();
        Assert.Equal(8, view.grad!.sum().item<float>());
    }

    /// <summary>Values of every kind come along: dtype, strides, sparse, scalar, empty. Spec: R4.7.</summary>
    [Fact]
    public void Kinds_are_copied()
    {
        var channelsLast = rand(1, 2, 3, 3).permute(0, 3, 1, 2);
        List<Tensor> tensors = [channelsLast, tensor(true), empty(0, 3), ones(2).to(bfloat16), ones(2, dtype: int64), eye(3).to_sparse()];
        var model = new Holder(tensors);

        var copies = (List<Tensor>)Copy(model).Held!;

        Assert.Equal(tensors.Select(item => (item.dtype, item.is_sparse)), copies.Select(item => (item.dtype, item.is_sparse)));
        Same.Trees(tensors.ConvertAll(item => item.to_dense()), copies.ConvertAll(item => item.to_dense()));
        Assert.Equal(channelsLast.stride(), copies[0].stride());
    }

    /// <summary>What a forward left behind is copied as a value, without its graph. Spec: R4.7.</summary>
    [Fact]
    public void Results_are_copied_as_values()
    {
        var model = new Holder();
        model.Held = model.call(ones(1, 2));

        var copy = (Tensor)Copy(model).Held!;

        Same.Trees(((Tensor)model.Held).detach(), copy);
        Assert.False(copy.requires_grad);
    }

    /// <summary>What was disposed, as a result is after its step, is no obstacle. Spec: R4.7.</summary>
    [Fact]
    public void Disposed_tensors_stay_disposed()
    {
        var model = new Holder();
        using (NewDisposeScope())
        {
            model.Held = model.call(ones(1, 2));
        }

        Assert.True(((Tensor)Copy(model).Held!).IsInvalid);
    }

    /// <summary>A generator goes on from the same state, on its own. Spec: R4.7.</summary>
    [Fact]
    public void Generators_are_copied()
    {
        using var generator = new Generator(7);
        rand(3, generator: generator);
        var model = new Holder(generator);

        using var copy = (Generator)Copy(model).Held!;

        Same.Trees(rand(5, generator: generator), rand(5, generator: copy));
    }

    /// <summary>What is not on the module's device is copied where it is. Spec: R4.7.</summary>
    [Fact]
    public void Tensors_elsewhere_stay_there()
    {
        var model = new Holder(new[] { empty(2, device: META) });

        Assert.Equal(DeviceType.META, ((Tensor[])Copy(model).Held!)[0].device_type);
    }

    public void Dispose() => scope.Dispose();

    private static Holder Copy(Holder model) => replicate(model, [CPU, CPU])[1];
}
