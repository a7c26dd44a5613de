using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>L-BFGS, with a fixed step or a line search by the strong Wolfe conditions.</summary>
/// <remarks>
/// A step evaluates the closure several times, as often as PyTorch's. It has one group. What a closure makes is disposed with
/// the step, but for the loss of the first evaluation. Spec: R9.6. Source: torch/optim/lbfgs.py
/// </remarks>
public sealed class LBFGS : Optimizer
{
    private const string OneGroup = "LBFGS doesn't support per-parameter options (parameter groups)";

    internal static readonly Schema Schema = new(
        "LBFGS",
        "lr max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn",
        "lr max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn",
        Check,
        ("lr", 1.0), ("max_iter", 20L), ("max_eval", null), ("tolerance_grad", 1e-7), ("tolerance_change", 1e-9),
        ("history_size", 100L), ("line_search_fn", null));

    /// <summary>Make an optimizer for parameters.</summary>
    /// <param name="parameters">What it updates.</param>
    /// <param name="lr">The learning rate.</param>
    /// <param name="max_iter">The most iterations of a step.</param>
    /// <param name="max_eval">The most evaluations of a step; null is 5/4 of the iterations.</param>
    /// <param name="tolerance_grad">Stops where no gradient is larger.</param>
    /// <param name="tolerance_change">Stops where parameters or loss change less.</param>
    /// <param name="history_size">How many updates the curvature is taken from.</param>
    /// <param name="line_search_fn"><c>"strong_wolfe"</c>, or null: a fixed step.</param>
    /// <param name="reference">Whose formula: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">No parameters, an option out of range, or another reference.</exception>
    public LBFGS(
        IEnumerable<Parameter> parameters,
        double lr = 1, long max_iter = 20, long? max_eval = null, double tolerance_grad = 1e-7,
        double tolerance_change = 1e-9, long history_size = 100, string? line_search_fn = null, string reference = "2.10")
        : this(One(parameters, own => new ParamGroup(own)), lr, max_iter, max_eval, tolerance_grad, tolerance_change, history_size, line_search_fn, reference)
    {
    }

    /// <inheritdoc cref="LBFGS(IEnumerable{Parameter}, double, long, long?, double, double, long, string?, string)"/>
    public LBFGS(
        IEnumerable<ParamGroup> parameters,
        double lr = 1, long max_iter = 20, long? max_eval = null, double tolerance_grad = 1e-7,
        double tolerance_change = 1e-9, long history_size = 100, string? line_search_fn = null, string reference = "2.10")
        : this(parameters, Options.Of(
            ("lr", lr), ("max_iter", max_iter), ("max_eval", max_eval), ("tolerance_grad", tolerance_grad),
            ("tolerance_change", tolerance_change), ("history_size", history_size), ("line_search_fn", line_search_fn)), reference)
    {
    }

    internal LBFGS(IEnumerable<ParamGroup> parameters, IReadOnlyDictionary<string, object?> options, string reference)
        : base(Schema, parameters, options, reference)
    {
        if (param_groups.Count != 1)
        {
            throw new ArgumentException(OneGroup);
        }
    }

    /// <inheritdoc/>
    internal override bool FailsHalfWay => true;

    /// <inheritdoc/>
    private protected override bool StatesAreShaped => false;

    /// <summary>Refuse another group: there can be only one.</summary>
    /// <param name="param_group">Any.</param>
    /// <exception cref="ArgumentException">Always.</exception>
    public override void add_param_group(TorchSharp.Modules.ParamGroup param_group) => throw new ArgumentException(OneGroup);

    /// <summary>Move along the direction of the curvature that was seen, up to <c>max_iter</c> times.</summary>
    /// <param name="closure">Clears the gradients, evaluates the model, calls backward and returns the loss.</param>
    /// <returns>The loss of the first evaluation.</returns>
    /// <exception cref="ArgumentException">No closure.</exception>
    /// <exception cref="InvalidOperationException">Another line search.</exception>
    public override Tensor step(Func<Tensor>? closure = null)
    {
        if (closure is null)
        {
            throw new ArgumentException("LBFGS: expected a closure that evaluates the model, got None");
        }

        using var untracked = no_grad();
        using var scope = NewDisposeScope();
        var group = (ParamGroup)param_groups[0];
        var state = StateOf(group.Parameters[0]);
        var held = state.Values.SelectMany(ParameterState.Tensors).ToList();
        try
        {
            return new LBFGSStep(group, state, closure, Old).Run().MoveToOuterDisposeScope();
        }
        finally
        {
            var kept = state.Values.SelectMany(ParameterState.Tensors).ToHashSet<Tensor>(ReferenceEqualityComparer.Instance);
            foreach (var tensor in kept)
            {
                tensor.DetachFromDisposeScope();
            }

            held.Where(tensor => !kept.Contains(tensor)).ToList().ForEach(tensor => tensor.Dispose());
        }
    }

    /// <inheritdoc/>
    private protected override void Update(Parameter parameter, Tensor gradient, ParameterState state, Optim.ParamGroup group)
        => throw new NotSupportedException("LBFGS: all parameters move together");

    private static void Check(Options options)
    {
        options.NotNegative("lr", "learning rate");
        options["max_eval"] = options["max_eval"] is { } given ? Convert.ToInt64(given, null) : (long)options["max_iter"]! * 5 / 4;
    }

    /// <summary>Parameters with options of their own; those that are not given are the optimizer's.</summary>
    public sealed class ParamGroup : Optim.ParamGroup
    {
        /// <summary>Make a group.</summary>
        /// <param name="parameters">The parameters.</param>
        /// <param name="lr">The learning rate.</param>
        /// <param name="max_iter">The most iterations of a step.</param>
        /// <param name="max_eval">The most evaluations of a step; null is 5/4 of the iterations.</param>
        /// <param name="tolerance_grad">Stops where no gradient is larger.</param>
        /// <param name="tolerance_change">Stops where parameters or loss change less.</param>
        /// <param name="history_size">How many updates the curvature is taken from.</param>
        /// <param name="line_search_fn"><c>"strong_wolfe"</c>, or null: a fixed step.</param>
        public ParamGroup(
            IEnumerable<Parameter> parameters,
            double? lr = null, long? max_iter = null, long? max_eval = null, double? tolerance_grad = null,
            double? tolerance_change = null, long? history_size = null, string? line_search_fn = null)
            : base(
                parameters,
                ("lr", lr), ("max_iter", max_iter), ("max_eval", max_eval), ("tolerance_grad", tolerance_grad),
                ("tolerance_change", tolerance_change), ("history_size", history_size),
                ("line_search_fn", line_search_fn))
        {
        }

        /// <summary>The most iterations of a step.</summary>
        public long max_iter
        {
            get => Convert.ToInt64(this["max_iter"], null);
            set => this["max_iter"] = value;
        }

        /// <summary>The most evaluations of a step; null is 5/4 of the iterations.</summary>
        public long? max_eval
        {
            get => this["max_eval"] is { } value ? Convert.ToInt64(value, null) : null;
            set => this["max_eval"] = value;
        }

        /// <summary>Stops where no gradient is larger.</summary>
        public double tolerance_grad
        {
            get => Number("tolerance_grad");
            set => this["tolerance_grad"] = value;
        }

        /// <summary>Stops where parameters or loss change less.</summary>
        public double tolerance_change
        {
            get => Number("tolerance_change");
            set => this["tolerance_change"] = value;
        }

        /// <summary>How many updates the curvature is taken from.</summary>
        public long history_size
        {
            get => Convert.ToInt64(this["history_size"], null);
            set => this["history_size"] = value;
        }

        /// <summary><c>"strong_wolfe"</c>, or null: a fixed step.</summary>
        public string? line_search_fn
        {
            get => (string?)this["line_search_fn"];
            set => this["line_search_fn"] = value;
        }
    }
}
