using System.Diagnostics.CodeAnalysis;
using System.Runtime.CompilerServices;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Moves the learning rates of an optimizer as PyTorch does, and has PyTorch's state.</summary>
/// <remarks>
/// Every rate is computed in PyTorch's order of operations, from the rate that the group has now, so that schedulers can
/// be chained. <c>verbose</c> is left out: PyTorch has dropped it.
/// Spec: R27.1, R27.2, R27.3. Source: torch/optim/lr_scheduler.py
/// </remarks>
public abstract class Scheduler : optim.lr_scheduler.LRScheduler, IStateful
{
    private readonly List<double> lastRates = [];
    private List<double> baseRates = [];
    private int lastEpoch = -1;

    /// <summary>Attach the optimizer.</summary>
    private protected Scheduler(optim.Optimizer optimizer, string reference)
    {
        this.optimizer = optimizer ?? throw new ArgumentNullException(nameof(optimizer));
        old = reference switch
        {
            "2.10" => false,
            "1.13" => true,
            _ => throw new ArgumentException($"{GetType().Name}: expected reference 2.10 or 1.13, got {reference}"),
        };

        // TorchSharp's own method cannot be overridden: it gives these rates too.
        Shown(this) = lastRates;
    }

    /// <summary>Whose learning rates it moves.</summary>
    public optim.Optimizer optimizer { get; }

    /// <summary>The number of the last epoch, or update: 0 after the construction.</summary>
    public int last_epoch
    {
        get => lastEpoch;
        internal set => lastEpoch = value;
    }

    /// <summary>The rates that the schedule starts from, by group.</summary>
    public IReadOnlyList<double> base_lrs => baseRates;

    /// <summary>Whether a step can throw; else it only does arithmetic.</summary>
    internal virtual bool MayFail => groups.Count != base_lrs.Count;

    /// <summary>Whether PyTorch 1.13 is followed where it differs from 2.10.</summary>
    private protected bool old { get; }

    /// <summary>Whether this is the step that the construction makes.</summary>
    private protected bool initial { get; private set; }

    /// <summary>The groups, also those that were added meanwhile.</summary>
    private protected IReadOnlyList<optim.ILearningRateController> groups => [.. optimizer.ParamGroups];

    /// <summary>The number of steps since the construction.</summary>
    private protected int steps => _step_count;

    /// <summary>Move on by one epoch, or update.</summary>
    public override void step() => step(null);

    /// <summary>Move on, or with an epoch take the rates of that epoch, in closed form where there is one.</summary>
    /// <param name="epoch">The number to go to; without, the next.</param>
    public override void step(int? epoch)
    {
        _step_count++;
        Update(epoch);
    }

    /// <summary>Return the rates of the last step.</summary>
    /// <returns>A fresh list, by group.</returns>
    [SuppressMessage("Design", "CA1024", Justification = "PyTorch's name.")]
    public new IReadOnlyList<double> get_last_lr() => [.. lastRates];

    /// <summary>Return the state under PyTorch's names.</summary>
    /// <remarks>
    /// The tree has dictionaries with keys of strings, lists, numbers, strings, booleans and null. Functions are null,
    /// and the milestones of <see cref="MultiStepLR"/> have strings as keys, as in JSON. Spec: R27.3.
    /// </remarks>
    /// <returns>A fresh tree.</returns>
    public Dictionary<string, object?> state_dict()
    {
        var writer = new StateWriter();
        Exchange(writer);
        return writer.State;
    }

    /// <summary>Take a state, written in either language; what it does not name stays as it is.</summary>
    /// <remarks>
    /// Names that are unknown here are passed over, as those that only another version of PyTorch has. The learning
    /// rates are the optimizer's: load its state too. Spec: R27.3.
    /// </remarks>
    /// <param name="state">A tree such as <see cref="state_dict"/> returns.</param>
    /// <exception cref="ArgumentException">A value of another type; nothing is changed then.</exception>
    public void load_state_dict(IReadOnlyDictionary<string, object?> state)
    {
        Exchange(new StateReader(GetType().Name, state, apply: false));
        Exchange(new StateReader(GetType().Name, state, apply: true));
    }

    /// <inheritdoc/>
    object? IStateful.state_dict() => state_dict();

    /// <inheritdoc/>
    void IStateful.load_state_dict(object? state) => load_state_dict(StateFields.Entries(state));

    /// <summary>Name every field of the state, in PyTorch's order.</summary>
    internal virtual void Exchange(StateFields state)
    {
        state.Field("base_lrs", ref baseRates);
        state.Field("last_epoch", ref lastEpoch);
        state.Constant("verbose", false, when: old);
        state.Field("_step_count", ref _step_count);
        state.Constant("_is_initial", false, when: !old);
        state.Constant("_get_lr_called_within_step", false);
        ExchangeRates(state);
    }

    /// <summary>Make the step of a construction.</summary>
    internal virtual void InitialStep()
    {
        _step_count = 0;
        initial = true;
        try
        {
            step();
        }
        finally
        {
            initial = false;
        }
    }

    /// <summary>Set the rates of the next epoch, or of a given one.</summary>
    internal void Update(int? epoch)
    {
        lastEpoch = epoch ?? lastEpoch + 1;
        Set([.. epoch is null ? get_lr() : get_closed_form_lr()]);
    }

    /// <summary>Name the rates of the last step.</summary>
    private protected void ExchangeRates(StateFields state)
    {
        var rates = lastRates;
        state.Field("_last_lr", ref rates);
        Show(rates);
    }

    /// <summary>Note the rates that the schedule starts from, and make the first step.</summary>
    private protected void Start(int last_epoch)
    {
        foreach (var (index, group) in groups.Index())
        {
            if (last_epoch == -1)
            {
                GroupEntries.Begin(group);
            }
            else
            {
                GroupEntries.CheckBegun(group, index, old);
            }
        }

        baseRates = [.. groups.Select(group => GroupEntries.Get(group, "initial_lr"))];
        lastEpoch = last_epoch;
        InitialStep();
    }

    /// <summary>Start from other rates.</summary>
    private protected void Rebase(IEnumerable<double> rates) => baseRates = [.. rates];

    /// <summary>Give the groups their rates.</summary>
    private protected void Set(IReadOnlyList<double> rates)
    {
        foreach (var (group, rate) in Zip(groups, rates))
        {
            group.LearningRate = rate;
        }

        Show(Rates());
    }

    /// <summary>Note the rates of the last step.</summary>
    private protected void Show(IEnumerable<double> rates)
    {
        double[] shown = [.. rates];
        lastRates.Clear();
        lastRates.AddRange(shown);
    }

    /// <summary>List the rates that the groups have now, times a factor.</summary>
    private protected double[] Rates(double factor = 1) => [.. groups.Select(group => group.LearningRate * factor)];

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_last_lrs")]
    private static extern ref IList<double> Shown(optim.lr_scheduler.LRScheduler scheduler);

    /// <summary>Pair two lists; PyTorch 1.13 drops what is left over, 2.10 refuses it.</summary>
    private protected IEnumerable<(TFirst First, TSecond Second)> Zip<TFirst, TSecond>(IReadOnlyList<TFirst> first, IReadOnlyList<TSecond> second)
        => old || first.Count == second.Count
            ? first.Zip(second)
            : throw new ArgumentException($"zip() argument 2 is {(second.Count < first.Count ? "shorter" : "longer")} than argument 1");
}
