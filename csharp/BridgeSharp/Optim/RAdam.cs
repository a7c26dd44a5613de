using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Adam that trusts its second moment by the number of steps behind it.</summary>
/// <remarks>Spec: R9.5. Source: torch/optim/radam.py</remarks>
public sealed class RAdam : Optimizer, optim.IBetas
{
    internal static readonly Schema Schema = new(
        "RAdam",
        "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable",
        "lr betas eps weight_decay foreach",
        options => options.Adam(),
        ("lr", 1e-3), ("betas", (0.9, 0.999)), ("eps", 1e-8), ("weight_decay", 0.0), ("decoupled_weight_decay", false),
        ("maximize", false));

    /// <summary>Make an optimizer for parameters.</summary>
    /// <param name="parameters">What it updates.</param>
    /// <param name="lr">The learning rate.</param>
    /// <param name="beta1">The decay of the first moment.</param>
    /// <param name="beta2">The decay of the second moment.</param>
    /// <param name="eps">Added to the denominator.</param>
    /// <param name="weight_decay">The L2 penalty.</param>
    /// <param name="decoupled_weight_decay">Shrink the parameter itself, as AdamW does.</param>
    /// <param name="maximize">Climb instead of descend.</param>
    /// <param name="reference">Whose formula: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">No parameters, an option out of range, or another reference.</exception>
    public RAdam(
        IEnumerable<Parameter> parameters,
        double lr = 1e-3, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
        bool decoupled_weight_decay = false, bool maximize = false, string reference = "2.10")
        : this(One(parameters, own => new ParamGroup(own)), lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize, reference)
    {
    }

    /// <inheritdoc cref="RAdam(IEnumerable{Parameter}, double, double, double, double, double, bool, bool, string)"/>
    public RAdam(
        IEnumerable<ParamGroup> parameters,
        double lr = 1e-3, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
        bool decoupled_weight_decay = false, bool maximize = false, string reference = "2.10")
        : this(parameters, Options.Of(
            ("lr", lr), ("betas", (beta1, beta2)), ("eps", eps), ("weight_decay", weight_decay),
            ("decoupled_weight_decay", decoupled_weight_decay), ("maximize", maximize)), reference)
    {
    }

    internal RAdam(IEnumerable<ParamGroup> parameters, IReadOnlyDictionary<string, object?> options, string reference)
        : base(Schema, parameters, options, reference)
    {
    }

    /// <inheritdoc/>
    public (double, double) Betas
    {
        get => ((double, double))Defaults["betas"]!;
        set => Defaults["betas"] = value;
    }

    /// <inheritdoc/>
    private protected override IEnumerable<(string Name, Func<object?> Make)> Start(Parameter parameter, Tensor gradient, Optim.ParamGroup group)
    {
        yield return ("step", () => Formulas.Number(0, Old));
        yield return ("exp_avg", () => Formulas.Zeros(parameter));
        yield return ("exp_avg_sq", () => Formulas.Zeros(parameter));
    }

    /// <inheritdoc/>
    private protected override void Update(Parameter parameter, Tensor gradient, ParameterState state, Optim.ParamGroup group)
    {
        var own = (ParamGroup)group;
        var (beta1, beta2) = own.betas;
        var step = state.Step();
        var move = Formulas.Decayed(gradient, parameter, own.maximize, own.lr, own.weight_decay, own.decoupled_weight_decay);
        Formulas.Move(state.Tensor("exp_avg"), move, beta1, Old);
        var square = Formulas.MoveSquare(state.Tensor("exp_avg_sq"), move, beta2);
        var correction2 = 1 - Math.Pow(beta2, step);
        var update = state.Tensor("exp_avg") / (1 - Math.Pow(beta1, step)) * own.lr;
        var longest = (2 / (1 - beta2)) - 1;
        var length = longest - (2 * step * Math.Pow(beta2, step) / correction2);
        if (length > 5)
        {
            update = update * (Formulas.Root(correction2, Old) / square.sqrt().add_(own.eps)) * Rectification(length, longest);
        }

        parameter.add_(update, alpha: -1);
    }

    private double Rectification(double length, double longest)
        => Formulas.Root((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length), Old);

    /// <summary>Parameters with options of their own; those that are not given are the optimizer's.</summary>
    public sealed class ParamGroup : Optim.ParamGroup, optim.IBetas
    {
        /// <summary>Make a group.</summary>
        /// <param name="parameters">The parameters.</param>
        /// <param name="lr">The learning rate.</param>
        /// <param name="beta1">The decay of the first moment.</param>
        /// <param name="beta2">The decay of the second moment.</param>
        /// <param name="eps">Added to the denominator.</param>
        /// <param name="weight_decay">The L2 penalty.</param>
        /// <param name="decoupled_weight_decay">Shrink the parameter itself, as AdamW does.</param>
        /// <param name="maximize">Climb instead of descend.</param>
        public ParamGroup(
            IEnumerable<Parameter> parameters,
            double? lr = null, double? beta1 = null, double? beta2 = null, double? eps = null,
            double? weight_decay = null, bool? decoupled_weight_decay = null, bool? maximize = null)
            : base(
                parameters,
                ("lr", lr), ("betas", Two("betas", beta1, beta2)), ("eps", eps), ("weight_decay", weight_decay),
                ("decoupled_weight_decay", decoupled_weight_decay), ("maximize", maximize))
        {
        }

        /// <summary>The decays of both moments.</summary>
        public (double, double) betas
        {
            get => Pair("betas");
            set => this["betas"] = value;
        }

        /// <summary>Added to the denominator.</summary>
        public double eps
        {
            get => Number("eps");
            set => this["eps"] = value;
        }

        /// <summary>The L2 penalty.</summary>
        public double weight_decay
        {
            get => Number("weight_decay");
            set => this["weight_decay"] = value;
        }

        /// <summary>Shrink the parameter itself, as AdamW does.</summary>
        public bool decoupled_weight_decay
        {
            get => Flag("decoupled_weight_decay");
            set => this["decoupled_weight_decay"] = value;
        }

        /// <summary>Climb instead of descend.</summary>
        public bool maximize
        {
            get => Flag("maximize");
            set => this["maximize"] = value;
        }

        (double, double) optim.IBetas.Betas
        {
            get => betas;
            set => betas = value;
        }
    }
}
