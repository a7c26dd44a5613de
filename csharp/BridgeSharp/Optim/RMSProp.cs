using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Gradients divided by the root of their mean square.</summary>
/// <remarks>
/// The mean of centered gradients moves by <c>lerp_</c>, in PyTorch 1.13 by <c>mul_</c> and <c>add_</c>.
/// Spec: R9.5. Source: torch/optim/rmsprop.py
/// </remarks>
public sealed class RMSProp : Optimizer, optim.IMomentum
{
    internal static readonly Schema Schema = new(
        "RMSprop",
        "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable",
        "lr momentum alpha eps centered weight_decay foreach maximize differentiable",
        Check,
        ("lr", 0.01), ("alpha", 0.99), ("eps", 1e-8), ("weight_decay", 0.0), ("momentum", 0.0), ("centered", false),
        ("maximize", false));

    /// <summary>Make an optimizer for parameters.</summary>
    /// <param name="parameters">What it updates.</param>
    /// <param name="lr">The learning rate.</param>
    /// <param name="alpha">The decay of the mean of squares.</param>
    /// <param name="eps">Added to the denominator.</param>
    /// <param name="weight_decay">The L2 penalty.</param>
    /// <param name="momentum">The share of the last update that is kept.</param>
    /// <param name="centered">Divide by the variance, not by the mean of squares.</param>
    /// <param name="maximize">Climb instead of descend.</param>
    /// <param name="reference">Whose formula: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">No parameters, an option out of range, or another reference.</exception>
    public RMSProp(
        IEnumerable<Parameter> parameters,
        double lr = 0.01, double alpha = 0.99, double eps = 1e-8, double weight_decay = 0, double momentum = 0,
        bool centered = false, bool maximize = false, string reference = "2.10")
        : this(One(parameters, own => new ParamGroup(own)), lr, alpha, eps, weight_decay, momentum, centered, maximize, reference)
    {
    }

    /// <inheritdoc cref="RMSProp(IEnumerable{Parameter}, double, double, double, double, double, bool, bool, string)"/>
    public RMSProp(
        IEnumerable<ParamGroup> parameters,
        double lr = 0.01, double alpha = 0.99, double eps = 1e-8, double weight_decay = 0, double momentum = 0,
        bool centered = false, bool maximize = false, string reference = "2.10")
        : this(parameters, Options.Of(
            ("lr", lr), ("alpha", alpha), ("eps", eps), ("weight_decay", weight_decay), ("momentum", momentum),
            ("centered", centered), ("maximize", maximize)), reference)
    {
    }

    internal RMSProp(IEnumerable<ParamGroup> parameters, IReadOnlyDictionary<string, object?> options, string reference)
        : base(Schema, parameters, options, reference)
    {
    }

    /// <inheritdoc/>
    public double Momentum
    {
        get => (double)Defaults["momentum"]!;
        set => Defaults["momentum"] = value;
    }

    /// <inheritdoc/>
    private protected override bool PlainStep => Old;

    /// <inheritdoc/>
    private protected override IEnumerable<(string Name, Func<object?> Make)> Start(Parameter parameter, Tensor gradient, Optim.ParamGroup group)
    {
        yield return ("step", () => Old ? (object)0L : Formulas.Number(0, Old));
        yield return ("square_avg", () => Formulas.Zeros(parameter));
        if (((ParamGroup)group).momentum > 0)
        {
            yield return ("momentum_buffer", () => Formulas.Zeros(parameter));
        }

        if (((ParamGroup)group).centered)
        {
            yield return ("grad_avg", () => Formulas.Zeros(parameter));
        }
    }

    /// <inheritdoc/>
    private protected override void Update(Parameter parameter, Tensor gradient, ParameterState state, Optim.ParamGroup group)
    {
        var own = (ParamGroup)group;
        state.Step();
        var move = Formulas.Prepared(gradient, parameter, own.maximize, own.weight_decay);
        var square = Formulas.MoveSquare(state.Tensor("square_avg"), move, own.alpha);
        if (own.centered)
        {
            var mean = state.Tensor("grad_avg");
            Formulas.Move(mean, move, own.alpha, Old);
            square = square.addcmul(mean, mean, value: -1);
        }

        var root = square.sqrt().add_(own.eps);
        if (own.momentum > 0)
        {
            parameter.add_(state.Tensor("momentum_buffer").scale_(own.momentum).addcdiv_(move, root), alpha: -own.lr);
        }
        else
        {
            parameter.addcdiv_(move, root, value: -own.lr);
        }
    }

    private static void Check(Options options)
    {
        options.NotNegative("lr", "learning rate");
        options.NotNegative("eps", "epsilon value");
        options.NotNegative("momentum", "momentum value");
        options.NotNegative("weight_decay", "weight_decay value");
        options.NotNegative("alpha", "alpha value");
    }

    /// <summary>Parameters with options of their own; those that are not given are the optimizer's.</summary>
    public sealed class ParamGroup : Optim.ParamGroup, optim.IMomentum
    {
        /// <summary>Make a group.</summary>
        /// <param name="parameters">The parameters.</param>
        /// <param name="lr">The learning rate.</param>
        /// <param name="alpha">The decay of the mean of squares.</param>
        /// <param name="eps">Added to the denominator.</param>
        /// <param name="weight_decay">The L2 penalty.</param>
        /// <param name="momentum">The share of the last update that is kept.</param>
        /// <param name="centered">Divide by the variance, not by the mean of squares.</param>
        /// <param name="maximize">Climb instead of descend.</param>
        public ParamGroup(
            IEnumerable<Parameter> parameters,
            double? lr = null, double? alpha = null, double? eps = null, double? weight_decay = null,
            double? momentum = null, bool? centered = null, bool? maximize = null)
            : base(
                parameters,
                ("lr", lr), ("alpha", alpha), ("eps", eps), ("weight_decay", weight_decay), ("momentum", momentum),
                ("centered", centered), ("maximize", maximize))
        {
        }

        /// <summary>The decay of the mean of squares.</summary>
        public double alpha
        {
            get => Number("alpha");
            set => this["alpha"] = value;
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

        /// <summary>The share of the last update that is kept.</summary>
        public double momentum
        {
            get => Number("momentum");
            set => this["momentum"] = value;
        }

        /// <summary>Divide by the variance, not by the mean of squares.</summary>
        public bool centered
        {
            get => Flag("centered");
            set => this["centered"] = value;
        }

        /// <summary>Climb instead of descend.</summary>
        public bool maximize
        {
            get => Flag("maximize");
            set => this["maximize"] = value;
        }

        double optim.IMomentum.Momentum
        {
            get => momentum;
            set => momentum = value;
        }
    }
}
