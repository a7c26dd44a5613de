using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Steps as large as the steps before, without a rate to choose.</summary>
/// <remarks>Spec: R9.5. Source: torch/optim/adadelta.py</remarks>
public sealed class Adadelta : Optimizer
{
    internal static readonly Schema Schema = new(
        "Adadelta",
        "lr rho eps weight_decay maximize capturable foreach differentiable",
        "lr rho eps weight_decay maximize foreach",
        Check,
        ("lr", 1.0), ("rho", 0.9), ("eps", 1e-6), ("weight_decay", 0.0), ("maximize", false));

    /// <summary>Make an optimizer for parameters.</summary>
    /// <param name="parameters">What it updates.</param>
    /// <param name="lr">The learning rate.</param>
    /// <param name="rho">The decay of the means of squares.</param>
    /// <param name="eps">Added to the denominator.</param>
    /// <param name="weight_decay">The L2 penalty.</param>
    /// <param name="maximize">Climb instead of descend.</param>
    /// <param name="reference">Whose formula: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">No parameters, an option out of range, or another reference.</exception>
    public Adadelta(
        IEnumerable<Parameter> parameters,
        double lr = 1.0, double rho = 0.9, double eps = 1e-6, double weight_decay = 0, bool maximize = false,
        string reference = "2.10")
        : this(One(parameters, own => new ParamGroup(own)), lr, rho, eps, weight_decay, maximize, reference)
    {
    }

    /// <inheritdoc cref="Adadelta(IEnumerable{Parameter}, double, double, double, double, bool, string)"/>
    public Adadelta(
        IEnumerable<ParamGroup> parameters,
        double lr = 1.0, double rho = 0.9, double eps = 1e-6, double weight_decay = 0, bool maximize = false,
        string reference = "2.10")
        : this(parameters, Options.Of(
            ("lr", lr), ("rho", rho), ("eps", eps), ("weight_decay", weight_decay), ("maximize", maximize)), reference)
    {
    }

    internal Adadelta(IEnumerable<ParamGroup> parameters, IReadOnlyDictionary<string, object?> options, string reference)
        : base(Schema, parameters, options, reference)
    {
    }

    /// <inheritdoc/>
    private protected override bool PlainStep => Old;

    /// <inheritdoc/>
    private protected override IEnumerable<(string Name, Func<object?> Make)> Start(Parameter parameter, Tensor gradient, Optim.ParamGroup group)
    {
        yield return ("step", () => Old ? (object)0L : Formulas.Number(0, Old));
        yield return ("square_avg", () => Formulas.Zeros(parameter));
        yield return ("acc_delta", () => Formulas.Zeros(parameter));
    }

    /// <inheritdoc/>
    private protected override void Update(Parameter parameter, Tensor gradient, ParameterState state, Optim.ParamGroup group)
    {
        var own = (ParamGroup)group;
        state.Step();
        var move = Formulas.Prepared(gradient, parameter, own.maximize, own.weight_decay);
        var square = Formulas.MoveSquare(state.Tensor("square_avg"), move, own.rho);
        var past = state.Tensor("acc_delta");
        var delta = past.add(own.eps).sqrt_().div_(square.add(own.eps).sqrt_()).mul_(move);
        Formulas.MoveSquare(past, delta, own.rho);
        parameter.add_(delta, alpha: -own.lr);
    }

    private static void Check(Options options)
    {
        options.NotNegative("lr", "learning rate");
        if (!((double)options["rho"]! is >= 0 and <= 1))
        {
            options.Refuse("rho", "rho value");
        }

        options.NotNegative("eps", "epsilon value");
        options.NotNegative("weight_decay", "weight_decay value");
    }

    /// <summary>Parameters with options of their own; those that are not given are the optimizer's.</summary>
    public sealed class ParamGroup : Optim.ParamGroup
    {
        /// <summary>Make a group.</summary>
        /// <param name="parameters">The parameters.</param>
        /// <param name="lr">The learning rate.</param>
        /// <param name="rho">The decay of the means of squares.</param>
        /// <param name="eps">Added to the denominator.</param>
        /// <param name="weight_decay">The L2 penalty.</param>
        /// <param name="maximize">Climb instead of descend.</param>
        public ParamGroup(
            IEnumerable<Parameter> parameters,
            double? lr = null, double? rho = null, double? eps = null, double? weight_decay = null,
            bool? maximize = null)
            : base(
                parameters,
                ("lr", lr), ("rho", rho), ("eps", eps), ("weight_decay", weight_decay), ("maximize", maximize))
        {
        }

        /// <summary>The decay of the means of squares.</summary>
        public double rho
        {
            get => Number("rho");
            set => this["rho"] = value;
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
    }
}
