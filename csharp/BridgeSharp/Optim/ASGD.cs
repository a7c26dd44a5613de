using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Stochastic gradient descent that keeps the average of its parameters.</summary>
/// <remarks>
/// The average is <c>ax</c> in the state. Spec: R9.5. Source: torch/optim/asgd.py
/// </remarks>
public sealed class ASGD : Optimizer
{
    internal static readonly Schema Schema = new(
        "ASGD",
        "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable",
        "lr lambd alpha t0 weight_decay foreach maximize",
        Check,
        ("lr", 0.01), ("lambd", 1e-4), ("alpha", 0.75), ("t0", 1e6), ("weight_decay", 0.0), ("maximize", false));

    /// <summary>Make an optimizer for parameters.</summary>
    /// <param name="parameters">What it updates.</param>
    /// <param name="lr">The learning rate.</param>
    /// <param name="lambd">The decay term.</param>
    /// <param name="alpha">The power of the decay of the rate.</param>
    /// <param name="t0">The step at which averaging starts.</param>
    /// <param name="weight_decay">The L2 penalty.</param>
    /// <param name="maximize">Climb instead of descend.</param>
    /// <param name="reference">Whose formula: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">No parameters, an option out of range, or another reference.</exception>
    public ASGD(
        IEnumerable<Parameter> parameters,
        double lr = 0.01, double lambd = 1e-4, double alpha = 0.75, double t0 = 1e6, double weight_decay = 0,
        bool maximize = false, string reference = "2.10")
        : this(One(parameters, own => new ParamGroup(own)), lr, lambd, alpha, t0, weight_decay, maximize, reference)
    {
    }

    /// <inheritdoc cref="ASGD(IEnumerable{Parameter}, double, double, double, double, double, bool, string)"/>
    public ASGD(
        IEnumerable<ParamGroup> parameters,
        double lr = 0.01, double lambd = 1e-4, double alpha = 0.75, double t0 = 1e6, double weight_decay = 0,
        bool maximize = false, string reference = "2.10")
        : this(parameters, Options.Of(
            ("lr", lr), ("lambd", lambd), ("alpha", alpha), ("t0", t0), ("weight_decay", weight_decay),
            ("maximize", maximize)), reference)
    {
    }

    internal ASGD(IEnumerable<ParamGroup> parameters, IReadOnlyDictionary<string, object?> options, string reference)
        : base(Schema, parameters, options, reference)
    {
    }

    /// <inheritdoc/>
    private protected override IEnumerable<(string Name, Func<object?> Make)> Start(Parameter parameter, Tensor gradient, Optim.ParamGroup group)
    {
        yield return ("step", () => Formulas.Number(0, Old));
        yield return ("eta", () => Formulas.Number(group.lr, Old));
        yield return ("mu", () => Formulas.Number(1, Old));
        yield return ("ax", () => Formulas.Zeros(parameter));
    }

    /// <inheritdoc/>
    private protected override void Update(Parameter parameter, Tensor gradient, ParameterState state, Optim.ParamGroup group)
    {
        var own = (ParamGroup)group;
        var step = state.Step();
        var move = Formulas.Prepared(gradient, parameter, own.maximize, own.weight_decay);
        var (eta, mu, average) = (state.Tensor("eta"), state.Tensor("mu"), state.Tensor("ax"));
        var rate = eta.ToDouble();
        parameter.scale_(1 - (own.lambd * rate));
        parameter.add_(move, alpha: -rate);
        if (mu.ToDouble() == 1)
        {
            average.copy_(parameter);
        }
        else
        {
            average.add_(parameter.sub(average).mul_(mu));
        }

        eta.copy_(tensor(own.lr / Math.Pow(1 + (own.lambd * own.lr * step), own.alpha), dtype: get_default_dtype()));
        mu.copy_(tensor(1 / Math.Max(1, step - own.t0), dtype: get_default_dtype()));
    }

    private static void Check(Options options)
    {
        options.NotNegative("lr", "learning rate");
        options.NotNegative("weight_decay", "weight_decay value");
    }

    /// <summary>Parameters with options of their own; those that are not given are the optimizer's.</summary>
    public sealed class ParamGroup : Optim.ParamGroup
    {
        /// <summary>Make a group.</summary>
        /// <param name="parameters">The parameters.</param>
        /// <param name="lr">The learning rate.</param>
        /// <param name="lambd">The decay term.</param>
        /// <param name="alpha">The power of the decay of the rate.</param>
        /// <param name="t0">The step at which averaging starts.</param>
        /// <param name="weight_decay">The L2 penalty.</param>
        /// <param name="maximize">Climb instead of descend.</param>
        public ParamGroup(
            IEnumerable<Parameter> parameters,
            double? lr = null, double? lambd = null, double? alpha = null, double? t0 = null,
            double? weight_decay = null, bool? maximize = null)
            : base(
                parameters,
                ("lr", lr), ("lambd", lambd), ("alpha", alpha), ("t0", t0), ("weight_decay", weight_decay),
                ("maximize", maximize))
        {
        }

        /// <summary>The decay term.</summary>
        public double lambd
        {
            get => Number("lambd");
            set => this["lambd"] = value;
        }

        /// <summary>The power of the decay of the rate.</summary>
        public double alpha
        {
            get => Number("alpha");
            set => this["alpha"] = value;
        }

        /// <summary>The step at which averaging starts.</summary>
        public double t0
        {
            get => Number("t0");
            set => this["t0"] = value;
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
