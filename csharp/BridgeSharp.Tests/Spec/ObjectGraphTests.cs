using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>What the functions of a module captured: the copy's, or shared.</summary>
[Collection(nameof(Serial))]
public sealed class ObjectGraphTests : IDisposable
{
    private readonly DisposeScope scope = NewDisposeScope();
    private readonly Holder model = new();

    /// <summary>A hook that captured the module acts on the copy, and writes into the caller's list. Spec: R4.5.</summary>
    [Fact]
    public void Hooks_act_on_the_copy_and_record_for_the_caller()
    {
        var owner = model;
        List<long> sums = [];
        model.register_forward_hook((_, _, output) =>
        {
            sums.Add(owner.Layer.weight.sum().to(int64).item<long>());
            return output;
        });

        var copy = Copy();
        using (no_grad())
        {
            model.Layer.weight.fill_(1);
            copy.Layer.weight.fill_(2);
        }

        copy.call(ones(1, 2));
        model.call(ones(1, 2));

        Assert.Equal([8, 4], sums);
    }

    /// <summary>A captured container that leads back to the module holds the copy's modules. Spec: R4.5.</summary>
    [Fact]
    public void Captured_containers_lead_to_the_copy()
    {
        Linear[] layers = [model.Layer];
        model.Held = (Func<Linear>)(() => layers[0]);

        var copy = Copy();

        Assert.Same(copy.Layer, ((Func<Linear>)copy.Held!)());
        Assert.Same(model.Layer, layers[0]);
    }

    /// <summary>What a function captured from elsewhere is shared: another module, or the object of a method. Spec: R4.5.</summary>
    [Fact]
    public void What_leads_elsewhere_is_shared()
    {
        var teacher = nn.Linear(2, 2);
        model.Held = (Func<Linear>)(() => teacher);
        var recorder = new Recorder();
        recorder.Remover = model.register_forward_hook(recorder.Note);

        var copy = Copy();
        copy.call(ones(1, 2));

        Assert.Same(teacher, ((Func<Linear>)copy.Held!)());
        Assert.Equal(1, recorder.Calls);
    }

    /// <summary>A method of the module, and a subscriber to its event, are the copy's. Spec: R4.5.</summary>
    [Fact]
    public void Methods_and_events_lead_to_the_copy()
    {
        List<nn.Module> callers = [];
        model.Held = (Func<Tensor, Tensor>)model.forward;
        model.Called += callers.Add;

        var copy = Copy();
        ((Func<Tensor, Tensor>)copy.Held!)(ones(1, 2));

        Assert.Equal([copy], callers);
    }

    /// <summary>What the module holds is one object in the copy, whoever else captured it. Spec: R4.4, R4.5.</summary>
    [Fact]
    public void What_the_module_holds_stays_one()
    {
        List<int> counts = [];
        model.Held = counts;
        model.Called += _ => counts.Add(1);

        var copy = Copy();
        copy.call(ones(1, 2));

        Assert.Empty(counts);
        Assert.Equal([1], (List<int>)copy.Held!);
    }

    /// <summary>Weak references to the module lead to the copy, others stay. Spec: R4.5.</summary>
    [Fact]
    public void Weak_references_lead_to_the_copy()
    {
        var outside = new object();
        model.Held = (new WeakReference<nn.Module>(model), new WeakReference(model.Layer), new WeakReference(outside));

        var copy = Copy();
        var (parent, layer, other) = ((WeakReference<nn.Module>, WeakReference, WeakReference))copy.Held!;

        Assert.True(parent.TryGetTarget(out var target));
        Assert.Same(copy, target);
        Assert.Same(copy.Layer, layer.Target);
        Assert.Same(outside, other.Target);
    }

    /// <summary>An object that its class keeps in a static field is the same in every replica. Spec: R4.4.</summary>
    [Fact]
    public void Static_objects_are_shared()
    {
        model.Held = (Mode.Fast, Random.Shared, StringComparer.OrdinalIgnoreCase);

        Assert.Equal(model.Held, Copy().Held);
    }

    public void Dispose() => scope.Dispose();

    private Holder Copy() => replicate(model, [CPU, CPU])[1];
}
