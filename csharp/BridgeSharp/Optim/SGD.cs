using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Stochastic gradient descent, with momentum or without.</summary>
/// <remarks>
/// A gradient may be sparse, without weight decay. In PyTorch 1.13 every updated parameter has a state, which is None without
/// momentum. Spec: R9.2. Source: torch/optim/sgd.py
/// </remarks>
public sealed class SGD : Optimizer, optim.IMomentum
{
    internal static readonly Schema Schema = new(
        "SGD",
        "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused",
        "lr momentum dampening weight_decay nesterov maximize foreach differentiable",
        Check,
        ("lr", 1e-3), ("momentum", 0.0), ("dampening", 0.0), ("weight_decay", 0.0), ("nesterov", false), ("maximize", false));

    /// <summary>Make an optimizer for parameters.</summary>
    /// <param name="parameters">What it updates.</param>
    /// <param name="lr">The learning rate.</param>
    /// <param name="momentum">The share of the last update that is kept.</param>
    /// <param name="dampening">What momentum takes off the gradient.</param>
    /// <param name="weight_decay">The L2 penalty.</param>
    /// <param name="nesterov">Look ahead along the momentum.</param>
    /// <param name="maximize">Climb instead of descend.</param>
    /// <param name="reference">Whose formula: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">No parameters, an option out of range, or another reference.</exception>
    public SGD(
        IEnumerable<Parameter> parameters,
        double lr = 1e-3, double momentum = 0, double dampening = 0, double weight_decay = 0, bool nesterov = false,
        bool maximize = false, string reference = "2.10")
        : this(One(parameters, own => new ParamGroup(own)), lr, momentum, dampening, weight_decay, nesterov, maximize, reference)
    {
    }

    /// <inheritdoc cref="SGD(IEnumerable{Parameter}, double, double, double, double, bool, bool, string)"/>
    public SGD(
        IEnumerable<ParamGroup> parameters,
        double lr = 1e-3, double momentum = 0, double dampening = 0, double weight_decay = 0, bool nesterov = false,
        bool maximize = false, string reference = "2.10")
        : this(parameters, Options.Of(
            ("lr", lr), ("momentum", momentum), ("dampening", dampening), ("weight_decay", weight_decay),
            ("nesterov", nesterov), ("maximize", maximize)), reference)
    {
    }

    internal SGD(IEnumerable<ParamGroup> parameters, IReadOnlyDictionary<string, object?> options, string reference)
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
    private protected override string? Refusal(Tensor gradient, Optim.ParamGroup group)
        => gradient.is_sparse && ((ParamGroup)group).weight_decay != 0
            ? "add(sparse, dense) is not supported. Use add(dense, sparse) instead."
            : null;

    /// <inheritdoc/>
    private protected override void Update(Parameter parameter, Tensor gradient, ParameterState state, Optim.ParamGroup group)
    {
        var own = (ParamGroup)group;
        var move = Formulas.Prepared(gradient, parameter, own.maximize, own.weight_decay);
        if (Old)
        {
            state.TryAdd("momentum_buffer", null);
        }

        if (own.momentum != 0)
        {
            var kept = Keep(move, state, own);
            move = own.nesterov ? move.add(kept, alpha: own.momentum) : kept;
        }

        parameter.add_(move, alpha: -own.lr);
    }

    /// <summary>Move the momentum, which starts as the first gradient.</summary>
    private static Tensor Keep(Tensor gradient, ParameterState state, ParamGroup group)
    {
        if (state.GetValueOrDefault("momentum_buffer") is Tensor kept)
        {
            return kept.scale_(group.momentum).add_(gradient, alpha: 1 - group.dampening);
        }

        var first = gradient.detach().clone().DetachFromDisposeScope();
        state["momentum_buffer"] = first;
        return first;
    }

    private static void Check(Options options)
    {
        foreach (var (option, title) in new[] { ("lr", "learning rate"), ("momentum", "momentum value"), ("weight_decay", "weight_decay value") })
        {
            if ((double)options[option]! < 0)
            {
                options.Refuse(option, title);
            }
        }

        if (options["nesterov"] is true && ((double)options["momentum"]! <= 0 || (double)options["dampening"]! != 0))
        {
            throw new ArgumentException("Nesterov momentum requires a momentum and zero dampening");
        }
    }

    /// <summary>Parameters with options of their own; those that are not given are the optimizer's.</summary>
    public sealed class ParamGroup : Optim.ParamGroup, optim.IMomentum
    {
        /// <summary>Make a group.</summary>
        /// <param name="parameters">The parameters.</param>
        /// <param name="lr">The learning rate.</param>
        /// <param name="momentum">The share of the last update that is kept.</param>
        /// <param name="dampening">What momentum takes off the gradient.</param>
        /// <param name="weight_decay">The L2 penalty.</param>
        /// <param name="nesterov">Look ahead along the momentum.</param>
        /// <param name="maximize">Climb instead of descend.</param>
        public ParamGroup(
            IEnumerable<Parameter> parameters,
            double? lr = null, double? momentum = null, double? dampening = null, double? weight_decay = null,
            bool? nesterov = null, bool? maximize = null)
            : base(
                parameters,
                ("lr", lr), ("momentum", momentum), ("dampening", dampening), ("weight_decay", weight_decay),
                ("nesterov", nesterov), ("maximize", maximize))
        {
        }

        /// <summary>The share of the last update that is kept.</summary>
        public double momentum
        {
            get => Number("momentum");
            set => this["momentum"] = value;
        }

        /// <summary>What momentum takes off the gradient.</summary>
        public double dampening
        {
            get => Number("dampening");
            set => this["dampening"] = value;
        }

        /// <summary>The L2 penalty.</summary>
        public double weight_decay
        {
            get => Number("weight_decay");
            set => this["weight_decay"] = value;
        }

        /// <summary>Look ahead along the momentum.</summary>
        public bool nesterov
        {
            get => Flag("nesterov");
            set => this["nesterov"] = value;
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
