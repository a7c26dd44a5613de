using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Trace;

/// <summary>Takes down the calls of layers, in the order of execution, for each replica on its own.</summary>
/// <remarks>
/// The hooks of the layers call <see cref="enter"/> and <see cref="leave"/>, and so does the rewritten code of a port;
/// whatever else sees a layer run may do so too. Spec: R30.4, R33.1, R33.4.
/// </remarks>
internal sealed class LayerCalls
{
    private readonly Dictionary<nn.Module, Place> places = new(ReferenceEqualityComparer.Instance);
    private readonly Dictionary<(nn.Module, int), string?> sites = [];
    private readonly List<Entry>[] forward;
    private readonly OutputGradients? backward;
    private readonly Keeper keeper;

    /// <summary>Know the layers by their names.</summary>
    /// <param name="replicas">The modules.</param>
    /// <param name="keeper">Takes the tensors down.</param>
    /// <param name="gradients">Take down the gradients of what comes out, too.</param>
    public LayerCalls(IReadOnlyList<nn.Module> replicas, Keeper keeper, bool gradients)
    {
        this.keeper = keeper;
        backward = gradients ? new OutputGradients(replicas.Count, keeper) : null;
        forward = [.. replicas.Select(_ => new List<Entry>())];
        foreach (var (index, replica) in replicas.Index())
        {
            foreach (var (name, layer) in TrainingState.Layers(replica))
            {
                places.TryAdd(layer, new Place(index, name));
            }
        }
    }

    /// <summary>The step whose calls are taken down, or null while none are.</summary>
    public int? step { get; set; }

    /// <summary>Hook every layer.</summary>
    /// <returns>What takes the hooks away.</returns>
    public IReadOnlyList<Action> attach() => [.. places.Keys.Select(layer => LayerHooks.Attach(layer, this))];

    /// <summary>Take down the inputs of a layer that is about to run.</summary>
    /// <param name="layer">The layer.</param>
    /// <param name="inputs">A tree of tensors.</param>
    /// <param name="site">Where it is called, if that is known.</param>
    /// <param name="own">Whether the layer itself calls: that is part of the call that is under way, if there is one.</param>
    public void enter(nn.Module layer, object? inputs, string? site = null, bool own = false)
    {
        if (step is { } number && places.TryGetValue(layer, out var place) && (place.Running++ == 0 || !own))
        {
            place.Site = site ?? Site(layer, place.Calls);
            Take(number, place, "input", Leaves.Of(inputs));
        }
    }

    /// <summary>Take down the outputs of a layer that has run.</summary>
    /// <returns>The same values; where gradients are taken down, in tensors whose gradients show.</returns>
    public object? leave(nn.Module layer, object? outputs, bool own = false)
    {
        if (step is not { } number || !places.TryGetValue(layer, out var place) || (--place.Running > 0 && own))
        {
            return outputs;
        }

        var tensors = Leaves.Of(outputs);
        var records = Take(number, place, "activation", tensors);
        place.Calls++;
        return backward is null || !tensors.Exists(tensor => tensor.requires_grad)
            ? outputs
            : Leaves.Put(outputs, records.Zip(tensors, backward.Watch));
    }

    /// <summary>Return and forget the calls so far: those of replica 0, then of 1 and so on.</summary>
    public IReadOnlyList<Entry> take()
    {
        Entry[] taken = [.. forward.SelectMany(entries => entries)];
        foreach (var entries in forward)
        {
            entries.Clear();
        }

        backward?.NextForward();
        return taken;
    }

    /// <summary>Return and forget the gradients of outputs so far, in the same order.</summary>
    public IReadOnlyList<Entry> take_gradients() => backward?.Take() ?? [];

    /// <summary>List the layers of a replica that were not called in this step.</summary>
    public IEnumerable<string> unseen(int replica)
        => places.Values.Where(place => place.Replica == replica && place.Calls == 0).Select(place => place.Name);

    /// <summary>Forget the step.</summary>
    public void reset()
    {
        take();
        take_gradients();
        foreach (var place in places.Values)
        {
            (place.Calls, place.Running) = (0, 0);
        }
    }

    private Record[] Take(int number, Place place, string kind, List<Tensor> tensors)
    {
        Record[] records = [.. tensors.Select((_, part) => new Record(number, "forward", place.Replica, kind, place.Name)
        {
            call = place.Calls,
            part = FormattableString.Invariant($"{part}"),
            at = place.Site,
        })];
        forward[place.Replica].AddRange(records.Zip(tensors, keeper.Entry));
        return records;
    }

    /// <summary>Find the place of a call in the user's code, once: symbols take long to read.</summary>
    private string? Site(nn.Module layer, int call)
    {
        lock (sites)
        {
            if (!sites.TryGetValue((layer, call), out var site))
            {
                sites[(layer, call)] = site = CallSite.Find();
            }

            return site;
        }
    }

    /// <summary>Where a layer belongs, how often it was called in this step, and how many of its calls are under way.</summary>
    private sealed class Place(int replica, string name)
    {
        public int Replica => replica;

        public string Name => name;

        public int Calls { get; set; }

        public int Running { get; set; }

        public string? Site { get; set; }
    }
}
