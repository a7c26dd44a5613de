using BridgeSharp.Parallel;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Step sizes that grow while the sign of the gradient stays, and shrink where it turns.</summary>
/// <remarks>Spec: R9.5. Source: torch/optim/rprop.py</remarks>
public sealed class Rprop : Optimizer
{
    internal static readonly Schema Schema = new(
        "Rprop",
        "lr etas step_sizes foreach maximize differentiable capturable",
        "lr etas step_sizes foreach maximize",
        Check,
        ("lr", 0.01), ("etas", (0.5, 1.2)), ("step_sizes", (1e-6, 50.0)), ("maximize", false));

    /// <summary>Make an optimizer for parameters.</summary>
    /// <param name="parameters">What it updates.</param>
    /// <param name="lr">The learning rate.</param>
    /// <param name="etaminus">What a step size shrinks by where the sign turns.</param>
    /// <param name="etaplus">What it grows by elsewhere.</param>
    /// <param name="min_step">The smallest step size.</param>
    /// <param name="max_step">The largest step size.</param>
    /// <param name="maximize">Climb instead of descend.</param>
    /// <param name="reference">Whose formula: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">No parameters, an option out of range, or another reference.</exception>
    public Rprop(
        IEnumerable<Parameter> parameters,
        double lr = 0.01, double etaminus = 0.5, double etaplus = 1.2, double min_step = 1e-6, double max_step = 50,
        bool maximize = false, string reference = "2.10")
        : this(One(parameters, own => new ParamGroup(own)), lr, etaminus, etaplus, min_step, max_step, maximize, reference)
    {
    }

    /// <inheritdoc cref="Rprop(IEnumerable{Parameter}, double, double, double, double, double, bool, string)"/>
    public Rprop(
        IEnumerable<ParamGroup> parameters,
        double lr = 0.01, double etaminus = 0.5, double etaplus = 1.2, double min_step = 1e-6, double max_step = 50,
        bool maximize = false, string reference = "2.10")
        : this(parameters, Options.Of(
            ("lr", lr), ("etas", (etaminus, etaplus)), ("step_sizes", (min_step, max_step)), ("maximize", maximize)), reference)
    {
    }

    internal Rprop(IEnumerable<ParamGroup> parameters, IReadOnlyDictionary<string, object?> options, string reference)
        : base(Schema, parameters, options, reference)
    {
    }

    /// <inheritdoc/>
    private protected override bool PlainStep => Old;

    /// <inheritdoc/>
    private protected override IEnumerable<(string Name, Func<object?> Make)> Start(Parameter parameter, Tensor gradient, Optim.ParamGroup group)
    {
        yield return ("step", () => Old ? (object)0L : Formulas.Number(0, Old));
        yield return ("prev", () => Formulas.Zeros(parameter));
        yield return ("step_size", () => full_like(gradient, group.lr).DetachFromDisposeScope());
    }

    /// <inheritdoc/>
    private protected override void Update(Parameter parameter, Tensor gradient, ParameterState state, Optim.ParamGroup group)
    {
        var own = (ParamGroup)group;
        var ((shrink, grow), (smallest, largest)) = (own.etas, own.step_sizes);
        state.Step();
        var move = own.maximize ? -gradient : gradient;
        var (previous, size) = (state.Tensor("prev"), state.Tensor("step_size"));
        var sign = move.mul(previous).sign();
        sign.masked_fill_(sign.gt(0), grow);
        sign.masked_fill_(sign.lt(0), shrink);
        sign.masked_fill_(sign.eq(0), 1);
        size.mul_(sign).clamp_(smallest, largest);
        move = move.clone().masked_fill_(sign.eq(shrink), 0);
        parameter.addcmul_(move.sign(), size, value: -1);
        previous.copy_(move);
    }

    private static void Check(Options options)
    {
        options.NotNegative("lr", "learning rate");
        var (shrink, grow) = ((double, double))options["etas"]!;
        if (!(shrink is > 0 and < 1 && grow > 1))
        {
            throw new ArgumentException($"Invalid eta values: {Text.Number(shrink)}, {Text.Number(grow)}");
        }
    }

    /// <summary>Parameters with options of their own; those that are not given are the optimizer's.</summary>
    public sealed class ParamGroup : Optim.ParamGroup
    {
        /// <summary>Make a group.</summary>
        /// <param name="parameters">The parameters.</param>
        /// <param name="lr">The learning rate.</param>
        /// <param name="etaminus">What a step size shrinks by where the sign turns.</param>
        /// <param name="etaplus">What it grows by elsewhere.</param>
        /// <param name="min_step">The smallest step size.</param>
        /// <param name="max_step">The largest step size.</param>
        /// <param name="maximize">Climb instead of descend.</param>
        public ParamGroup(
            IEnumerable<Parameter> parameters,
            double? lr = null, double? etaminus = null, double? etaplus = null, double? min_step = null,
            double? max_step = null, bool? maximize = null)
            : base(
                parameters,
                ("lr", lr), ("etas", Two("etas", etaminus, etaplus)),
                ("step_sizes", Two("step_sizes", min_step, max_step)), ("maximize", maximize))
        {
        }

        /// <summary>What a step size is multiplied by where the sign turns, and where it stays.</summary>
        public (double, double) etas
        {
            get => Pair("etas");
            set => this["etas"] = value;
        }

        /// <summary>The smallest and the largest step size.</summary>
        public (double, double) step_sizes
        {
            get => Pair("step_sizes");
            set => this["step_sizes"] = value;
        }

        /// <summary>Climb instead of descend.</summary>
        public bool maximize
        {
            get => Flag("maximize");
            set => this["maximize"] = value;
        }
    }
}
