using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Adam by the largest gradient in place of the mean square.</summary>
/// <remarks>Spec: R9.5. Source: torch/optim/adamax.py</remarks>
public sealed class Adamax : Optimizer, optim.IBetas
{
    internal static readonly Schema Schema = new(
        "Adamax",
        "lr betas eps weight_decay foreach maximize differentiable capturable",
        "lr betas eps weight_decay foreach maximize",
        options => options.Adam(),
        ("lr", 0.002), ("betas", (0.9, 0.999)), ("eps", 1e-8), ("weight_decay", 0.0), ("maximize", false));

    /// <summary>Make an optimizer for parameters.</summary>
    /// <param name="parameters">What it updates.</param>
    /// <param name="lr">The learning rate.</param>
    /// <param name="beta1">The decay of the first moment.</param>
    /// <param name="beta2">The decay of the second moment.</param>
    /// <param name="eps">Added to the denominator.</param>
    /// <param name="weight_decay">The L2 penalty.</param>
    /// <param name="maximize">Climb instead of descend.</param>
    /// <param name="reference">Whose formula: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">No parameters, an option out of range, or another reference.</exception>
    public Adamax(
        IEnumerable<Parameter> parameters,
        double lr = 0.002, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
        bool maximize = false, string reference = "2.10")
        : this(One(parameters, own => new ParamGroup(own)), lr, beta1, beta2, eps, weight_decay, maximize, reference)
    {
    }

    /// <inheritdoc cref="Adamax(IEnumerable{Parameter}, double, double, double, double, double, bool, string)"/>
    public Adamax(
        IEnumerable<ParamGroup> parameters,
        double lr = 0.002, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
        bool maximize = false, string reference = "2.10")
        : this(parameters, Options.Of(
            ("lr", lr), ("betas", (beta1, beta2)), ("eps", eps), ("weight_decay", weight_decay), ("maximize", maximize)), reference)
    {
    }

    internal Adamax(IEnumerable<ParamGroup> parameters, IReadOnlyDictionary<string, object?> options, string reference)
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
        yield return ("exp_inf", () => Formulas.Zeros(parameter));
    }

    /// <inheritdoc/>
    private protected override void Update(Parameter parameter, Tensor gradient, ParameterState state, Optim.ParamGroup group)
    {
        var own = (ParamGroup)group;
        var (beta1, beta2) = own.betas;
        var step = state.Step();
        var move = Formulas.Prepared(gradient, parameter, own.maximize, own.weight_decay);
        var (mean, largest) = (state.Tensor("exp_avg"), state.Tensor("exp_inf"));
        Formulas.Move(mean, move, beta1, Old);
        largest.copy_(maximum(largest.scale_(beta2), move.abs().add_(own.eps)));
        parameter.addcdiv_(mean, largest, value: -(own.lr / (1 - Math.Pow(beta1, step))));
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
        /// <param name="maximize">Climb instead of descend.</param>
        public ParamGroup(
            IEnumerable<Parameter> parameters,
            double? lr = null, double? beta1 = null, double? beta2 = null, double? eps = null,
            double? weight_decay = null, bool? maximize = null)
            : base(
                parameters,
                ("lr", lr), ("betas", Two("betas", beta1, beta2)), ("eps", eps), ("weight_decay", weight_decay),
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
