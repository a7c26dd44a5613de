using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Trace;

/// <summary>Takes down the calls of layers, in the order of execution, for each replica on its own.</summary>
/// <remarks>
/// The hooks of the layers call <see cref="enter"/> and <see cref="leave"/>; whatever else sees a layer run may do so
/// too. Spec: R30.4.
/// </remarks>
internal sealed class LayerCalls
{
    private readonly Dictionary<nn.Module, Place> places = new(ReferenceEqualityComparer.Instance);
    private readonly Dictionary<(nn.Module, int), string?> sites = [];
    private readonly List<Entry>[] forward;
    private readonly Keeper keeper;

    /// <summary>Know the layers by their names.</summary>
    /// <param name="replicas">The modules.</param>
    /// <param name="keeper">Takes the tensors down.</param>
    public LayerCalls(IReadOnlyList<nn.Module> replicas, Keeper keeper)
    {
        this.keeper = keeper;
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
    public void enter(nn.Module layer, object? inputs)
    {
        if (step is { } number && places.TryGetValue(layer, out var place))
        {
            place.Site = Site(layer, place.Calls);
            Take(number, place, "input", inputs);
        }
    }

    /// <summary>Take down the outputs of a layer that has run.</summary>
    public void leave(nn.Module layer, object? outputs)
    {
        if (step is { } number && places.TryGetValue(layer, out var place))
        {
            Take(number, place, "activation", outputs);
            place.Calls++;
        }
    }

    /// <summary>Return and forget the calls so far: those of replica 0, then of 1 and so on.</summary>
    public IReadOnlyList<Entry> take()
    {
        Entry[] taken = [.. forward.SelectMany(entries => entries)];
        foreach (var entries in forward)
        {
            entries.Clear();
        }

        return taken;
    }

    /// <summary>List the layers of a replica that were not called in this step.</summary>
    public IEnumerable<string> unseen(int replica)
        => places.Values.Where(place => place.Replica == replica && place.Calls == 0).Select(place => place.Name);

    /// <summary>List the layers of a replica that were called in this step, the last first.</summary>
    public IEnumerable<string> seen(int replica)
        => places.Values.Where(place => place.Replica == replica && place.Calls > 0).Select(place => place.Name);

    /// <summary>Forget the step.</summary>
    public void reset()
    {
        take();
        foreach (var place in places.Values)
        {
            place.Calls = 0;
        }
    }

    private void Take(int number, Place place, string kind, object? values)
    {
        foreach (var (part, tensor) in Leaves.Of(values).Index())
        {
            var record = new Record(number, "forward", place.Replica, kind, place.Name)
            {
                call = place.Calls,
                part = FormattableString.Invariant($"{part}"),
                at = place.Site,
            };
            forward[place.Replica].Add(keeper.Entry(record, tensor));
        }
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

    /// <summary>Where a layer belongs, and how often it was called in this step.</summary>
    private sealed class Place(int replica, string name)
    {
        public int Replica => replica;

        public string Name => name;

        public int Calls { get; set; }

        public string? Site { get; set; }
    }
}
