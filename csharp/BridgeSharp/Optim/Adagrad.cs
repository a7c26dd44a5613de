using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Gradients divided by the root of the sum of all their squares.</summary>
/// <remarks>
/// A gradient may be sparse, without weight decay. States are made with the optimizer, not at the first step.
/// Spec: R9.5. Source: torch/optim/adagrad.py
/// </remarks>
public sealed class Adagrad : Optimizer
{
    internal static readonly Schema Schema = new(
        "Adagrad",
        "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused",
        "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize",
        Check,
        ("lr", 0.01), ("lr_decay", 0.0), ("weight_decay", 0.0), ("initial_accumulator_value", 0.0), ("eps", 1e-10),
        ("maximize", false));

    /// <summary>Make an optimizer for parameters.</summary>
    /// <param name="parameters">What it updates.</param>
    /// <param name="lr">The learning rate.</param>
    /// <param name="lr_decay">How much the rate falls with every step.</param>
    /// <param name="weight_decay">The L2 penalty.</param>
    /// <param name="initial_accumulator_value">What the sum of squares starts from.</param>
    /// <param name="eps">Added to the denominator.</param>
    /// <param name="maximize">Climb instead of descend.</param>
    /// <param name="reference">Whose formula: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">No parameters, an option out of range, or another reference.</exception>
    public Adagrad(
        IEnumerable<Parameter> parameters,
        double lr = 0.01, double lr_decay = 0, double weight_decay = 0, double initial_accumulator_value = 0,
        double eps = 1e-10, bool maximize = false, string reference = "2.10")
        : this(One(parameters, own => new ParamGroup(own)), lr, lr_decay, weight_decay, initial_accumulator_value, eps, maximize, reference)
    {
    }

    /// <inheritdoc cref="Adagrad(IEnumerable{Parameter}, double, double, double, double, double, bool, string)"/>
    public Adagrad(
        IEnumerable<ParamGroup> parameters,
        double lr = 0.01, double lr_decay = 0, double weight_decay = 0, double initial_accumulator_value = 0,
        double eps = 1e-10, bool maximize = false, string reference = "2.10")
        : this(parameters, Options.Of(
            ("lr", lr), ("lr_decay", lr_decay), ("weight_decay", weight_decay),
            ("initial_accumulator_value", initial_accumulator_value), ("eps", eps), ("maximize", maximize)), reference)
    {
    }

    internal Adagrad(IEnumerable<ParamGroup> parameters, IReadOnlyDictionary<string, object?> options, string reference)
        : base(Schema, parameters, options, reference)
    {
    }

    /// <inheritdoc/>
    private protected override void Added(Optim.ParamGroup group)
    {
        foreach (var parameter in group.Parameters)
        {
            Begin(parameter, group);
        }
    }

    /// <inheritdoc/>
    private protected override string? Refusal(Tensor gradient, Optim.ParamGroup group)
        => gradient.is_sparse && ((ParamGroup)group).weight_decay != 0 ? "weight_decay option is not compatible with sparse gradients" : null;

    /// <inheritdoc/>
    private protected override IEnumerable<(string Name, Func<object?> Make)> Start(Parameter parameter, Tensor gradient, Optim.ParamGroup group)
    {
        yield return ("step", () => Formulas.Number(0, Old));
        yield return ("sum", () => full_like(parameter, (double)Defaults["initial_accumulator_value"]!).DetachFromDisposeScope());
    }

    /// <inheritdoc/>
    private protected override void Update(Parameter parameter, Tensor gradient, ParameterState state, Optim.ParamGroup group)
    {
        var own = (ParamGroup)group;
        var rate = own.lr / (1 + ((state.Step() - 1) * own.lr_decay));
        var move = Formulas.Prepared(gradient, parameter, own.maximize, own.weight_decay);
        var sum = state.Tensor("sum");
        if (move.is_sparse)
        {
            var (indices, values) = Sparse.Coalesce(move);
            sum.add_(sparse_coo_tensor(indices, values.pow(2), move.shape));
            var roots = Sparse.At(sum, indices).sqrt_().add_(own.eps);
            parameter.add_(sparse_coo_tensor(indices, values / roots, move.shape), alpha: -rate);
            return;
        }

        sum.addcmul_(move, move, value: 1);
        parameter.addcdiv_(move, sum.sqrt().add_(own.eps), value: -rate);
    }

    private static void Check(Options options)
    {
        options.NotNegative("lr", "learning rate");
        options.NotNegative("lr_decay", "lr_decay value");
        options.NotNegative("weight_decay", "weight_decay value");
        options.NotNegative("initial_accumulator_value", "initial_accumulator_value value");
        options.NotNegative("eps", "epsilon value");
    }

    /// <summary>Parameters with options of their own; those that are not given are the optimizer's.</summary>
    public sealed class ParamGroup : Optim.ParamGroup
    {
        /// <summary>Make a group.</summary>
        /// <param name="parameters">The parameters.</param>
        /// <param name="lr">The learning rate.</param>
        /// <param name="lr_decay">How much the rate falls with every step.</param>
        /// <param name="weight_decay">The L2 penalty.</param>
        /// <param name="initial_accumulator_value">What the sum of squares starts from.</param>
        /// <param name="eps">Added to the denominator.</param>
        /// <param name="maximize">Climb instead of descend.</param>
        public ParamGroup(
            IEnumerable<Parameter> parameters,
            double? lr = null, double? lr_decay = null, double? weight_decay = null,
            double? initial_accumulator_value = null, double? eps = null, bool? maximize = null)
            : base(
                parameters,
                ("lr", lr), ("lr_decay", lr_decay), ("weight_decay", weight_decay),
                ("initial_accumulator_value", initial_accumulator_value), ("eps", eps), ("maximize", maximize))
        {
        }

        /// <summary>How much the rate falls with every step.</summary>
        public double lr_decay
        {
            get => Number("lr_decay");
            set => this["lr_decay"] = value;
        }

        /// <summary>The L2 penalty.</summary>
        public double weight_decay
        {
            get => Number("weight_decay");
            set => this["weight_decay"] = value;
        }

        /// <summary>What the sum of squares starts from.</summary>
        public double initial_accumulator_value
        {
            get => Number("initial_accumulator_value");
            set => this["initial_accumulator_value"] = value;
        }

        /// <summary>Added to the denominator.</summary>
        public double eps
        {
            get => Number("eps");
            set => this["eps"] = value;
        }

        /// <summary>Climb instead of descend.</summary>
        public bool maximize
        {
            get => Flag("maximize");
            set => this["maximize"] = value;
        }
    }
}
