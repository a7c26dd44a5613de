using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Adam with Nesterov momentum.</summary>
/// <remarks>
/// In PyTorch 1.13 the next product has the last factor twice, as there. Spec: R9.5. Source: torch/optim/nadam.py
/// </remarks>
public sealed class NAdam : Optimizer, optim.IBetas
{
    internal static readonly Schema Schema = new(
        "NAdam",
        "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach capturable differentiable",
        "lr betas eps weight_decay momentum_decay foreach",
        Check,
        ("lr", 0.002), ("betas", (0.9, 0.999)), ("eps", 1e-8), ("weight_decay", 0.0), ("momentum_decay", 0.004),
        ("decoupled_weight_decay", false), ("maximize", false));

    /// <summary>Make an optimizer for parameters.</summary>
    /// <param name="parameters">What it updates.</param>
    /// <param name="lr">The learning rate.</param>
    /// <param name="beta1">The decay of the first moment.</param>
    /// <param name="beta2">The decay of the second moment.</param>
    /// <param name="eps">Added to the denominator.</param>
    /// <param name="weight_decay">The L2 penalty.</param>
    /// <param name="momentum_decay">How fast the momentum grows.</param>
    /// <param name="decoupled_weight_decay">Shrink the parameter itself, as AdamW does.</param>
    /// <param name="maximize">Climb instead of descend.</param>
    /// <param name="reference">Whose formula: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">No parameters, an option out of range, or another reference.</exception>
    public NAdam(
        IEnumerable<Parameter> parameters,
        double lr = 0.002, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
        double momentum_decay = 0.004, bool decoupled_weight_decay = false, bool maximize = false, string reference = "2.10")
        : this(One(parameters, own => new ParamGroup(own)), lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled_weight_decay, maximize, reference)
    {
    }

    /// <inheritdoc cref="NAdam(IEnumerable{Parameter}, double, double, double, double, double, double, bool, bool, string)"/>
    public NAdam(
        IEnumerable<ParamGroup> parameters,
        double lr = 0.002, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
        double momentum_decay = 0.004, bool decoupled_weight_decay = false, bool maximize = false, string reference = "2.10")
        : this(parameters, Options.Of(
            ("lr", lr), ("betas", (beta1, beta2)), ("eps", eps), ("weight_decay", weight_decay),
            ("momentum_decay", momentum_decay), ("decoupled_weight_decay", decoupled_weight_decay),
            ("maximize", maximize)), reference)
    {
    }

    internal NAdam(IEnumerable<ParamGroup> parameters, IReadOnlyDictionary<string, object?> options, string reference)
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
        yield return ("mu_product", () => Formulas.Number(1, Old));
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
        var mu = beta1 * (1 - (0.5 * Math.Pow(0.96, step * own.momentum_decay)));
        var next = beta1 * (1 - (0.5 * Math.Pow(0.96, (step + 1) * own.momentum_decay)));
        var product = state.Tensor("mu_product").scale_(mu);
        var following = Old ? (product * mu * next).ToDouble() : product.ToDouble() * next;

        var mean = state.Tensor("exp_avg");
        Formulas.Move(mean, move, beta1, Old);
        var square = Formulas.MoveSquare(state.Tensor("exp_avg_sq"), move, beta2);
        var denominator = square.div(1 - Math.Pow(beta2, step)).sqrt().add_(own.eps);
        parameter.addcdiv_(move, denominator, value: -own.lr * (1 - mu) / (1 - product.ToDouble()));
        parameter.addcdiv_(mean, denominator, value: -own.lr * next / (1 - following));
    }

    private static void Check(Options options)
    {
        options.Adam();
        options.NotNegative("momentum_decay", "momentum_decay value");
    }

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
        /// <param name="momentum_decay">How fast the momentum grows.</param>
        /// <param name="decoupled_weight_decay">Shrink the parameter itself, as AdamW does.</param>
        /// <param name="maximize">Climb instead of descend.</param>
        public ParamGroup(
            IEnumerable<Parameter> parameters,
            double? lr = null, double? beta1 = null, double? beta2 = null, double? eps = null,
            double? weight_decay = null, double? momentum_decay = null, bool? decoupled_weight_decay = null,
            bool? maximize = null)
            : base(
                parameters,
                ("lr", lr), ("betas", Two("betas", beta1, beta2)), ("eps", eps), ("weight_decay", weight_decay),
                ("momentum_decay", momentum_decay), ("decoupled_weight_decay", decoupled_weight_decay),
                ("maximize", maximize))
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

        /// <summary>How fast the momentum grows.</summary>
        public double momentum_decay
        {
            get => Number("momentum_decay");
            set => this["momentum_decay"] = value;
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
