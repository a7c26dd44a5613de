using BridgeSharp.Optim;
using TorchSharp.Modules;
using SGD = BridgeSharp.Optim.SGD;
using ASGD = BridgeSharp.Optim.ASGD;
using Rprop = BridgeSharp.Optim.Rprop;
using LBFGS = BridgeSharp.Optim.LBFGS;

namespace BridgeSharp;

/// <content>Optimizers as <c>torch.optim</c> makes them, with PyTorch's formulas and defaults.</content>
public static partial class bridge
{
    /// <summary>Optimizers and schedulers under the names of <c>torch.optim</c>, with PyTorch's formulas and defaults.</summary>
    public static partial class optim
    {
        /// <inheritdoc cref="SGD.SGD(IEnumerable{Parameter}, double, double, double, double, bool, bool, string)"/>
        public static SGD SGD(
            IEnumerable<Parameter> parameters,
            double lr = 1e-3, double momentum = 0, double dampening = 0, double weight_decay = 0, bool nesterov = false,
            bool maximize = false, string reference = "2.10")
            => new(parameters, lr, momentum, dampening, weight_decay, nesterov, maximize, reference);

        /// <inheritdoc cref="SGD.SGD(IEnumerable{Parameter}, double, double, double, double, bool, bool, string)"/>
        public static SGD SGD(
            IEnumerable<(string name, Parameter parameter)> parameters,
            double lr = 1e-3, double momentum = 0, double dampening = 0, double weight_decay = 0, bool nesterov = false,
            bool maximize = false, string reference = "2.10")
            => new(Optimizer.Named(parameters, (own, names) => new SGD.ParamGroup(own) { param_names = names }), lr, momentum, dampening, weight_decay, nesterov, maximize, reference);

        /// <inheritdoc cref="SGD.SGD(IEnumerable{Parameter}, double, double, double, double, bool, bool, string)"/>
        public static SGD SGD(
            IEnumerable<SGD.ParamGroup> parameters,
            double lr = 1e-3, double momentum = 0, double dampening = 0, double weight_decay = 0, bool nesterov = false,
            bool maximize = false, string reference = "2.10")
            => new(parameters, lr, momentum, dampening, weight_decay, nesterov, maximize, reference);

        /// <inheritdoc cref="ASGD.ASGD(IEnumerable{Parameter}, double, double, double, double, double, bool, string)"/>
        public static ASGD ASGD(
            IEnumerable<Parameter> parameters,
            double lr = 0.01, double lambd = 1e-4, double alpha = 0.75, double t0 = 1e6, double weight_decay = 0,
            bool maximize = false, string reference = "2.10")
            => new(parameters, lr, lambd, alpha, t0, weight_decay, maximize, reference);

        /// <inheritdoc cref="ASGD.ASGD(IEnumerable{Parameter}, double, double, double, double, double, bool, string)"/>
        public static ASGD ASGD(
            IEnumerable<(string name, Parameter parameter)> parameters,
            double lr = 0.01, double lambd = 1e-4, double alpha = 0.75, double t0 = 1e6, double weight_decay = 0,
            bool maximize = false, string reference = "2.10")
            => new(Optimizer.Named(parameters, (own, names) => new ASGD.ParamGroup(own) { param_names = names }), lr, lambd, alpha, t0, weight_decay, maximize, reference);

        /// <inheritdoc cref="ASGD.ASGD(IEnumerable{Parameter}, double, double, double, double, double, bool, string)"/>
        public static ASGD ASGD(
            IEnumerable<ASGD.ParamGroup> parameters,
            double lr = 0.01, double lambd = 1e-4, double alpha = 0.75, double t0 = 1e6, double weight_decay = 0,
            bool maximize = false, string reference = "2.10")
            => new(parameters, lr, lambd, alpha, t0, weight_decay, maximize, reference);

        /// <inheritdoc cref="Rprop.Rprop(IEnumerable{Parameter}, double, double, double, double, double, bool, string)"/>
        public static Rprop Rprop(
            IEnumerable<Parameter> parameters,
            double lr = 0.01, double etaminus = 0.5, double etaplus = 1.2, double min_step = 1e-6, double max_step = 50,
            bool maximize = false, string reference = "2.10")
            => new(parameters, lr, etaminus, etaplus, min_step, max_step, maximize, reference);

        /// <inheritdoc cref="Rprop.Rprop(IEnumerable{Parameter}, double, double, double, double, double, bool, string)"/>
        public static Rprop Rprop(
            IEnumerable<(string name, Parameter parameter)> parameters,
            double lr = 0.01, double etaminus = 0.5, double etaplus = 1.2, double min_step = 1e-6, double max_step = 50,
            bool maximize = false, string reference = "2.10")
            => new(Optimizer.Named(parameters, (own, names) => new Rprop.ParamGroup(own) { param_names = names }), lr, etaminus, etaplus, min_step, max_step, maximize, reference);

        /// <inheritdoc cref="Rprop.Rprop(IEnumerable{Parameter}, double, double, double, double, double, bool, string)"/>
        public static Rprop Rprop(
            IEnumerable<Rprop.ParamGroup> parameters,
            double lr = 0.01, double etaminus = 0.5, double etaplus = 1.2, double min_step = 1e-6, double max_step = 50,
            bool maximize = false, string reference = "2.10")
            => new(parameters, lr, etaminus, etaplus, min_step, max_step, maximize, reference);

        /// <inheritdoc cref="LBFGS.LBFGS(IEnumerable{Parameter}, double, long, long?, double, double, long, string?, string)"/>
        public static LBFGS LBFGS(
            IEnumerable<Parameter> parameters,
            double lr = 1, long max_iter = 20, long? max_eval = null, double tolerance_grad = 1e-7,
            double tolerance_change = 1e-9, long history_size = 100, string? line_search_fn = null,
            string reference = "2.10")
            => new(parameters, lr, max_iter, max_eval, tolerance_grad, tolerance_change, history_size, line_search_fn, reference);

        /// <inheritdoc cref="LBFGS.LBFGS(IEnumerable{Parameter}, double, long, long?, double, double, long, string?, string)"/>
        public static LBFGS LBFGS(
            IEnumerable<(string name, Parameter parameter)> parameters,
            double lr = 1, long max_iter = 20, long? max_eval = null, double tolerance_grad = 1e-7,
            double tolerance_change = 1e-9, long history_size = 100, string? line_search_fn = null,
            string reference = "2.10")
            => new(Optimizer.Named(parameters, (own, names) => new LBFGS.ParamGroup(own) { param_names = names }), lr, max_iter, max_eval, tolerance_grad, tolerance_change, history_size, line_search_fn, reference);

        /// <inheritdoc cref="LBFGS.LBFGS(IEnumerable{Parameter}, double, long, long?, double, double, long, string?, string)"/>
        public static LBFGS LBFGS(
            IEnumerable<LBFGS.ParamGroup> parameters,
            double lr = 1, long max_iter = 20, long? max_eval = null, double tolerance_grad = 1e-7,
            double tolerance_change = 1e-9, long history_size = 100, string? line_search_fn = null,
            string reference = "2.10")
            => new(parameters, lr, max_iter, max_eval, tolerance_grad, tolerance_change, history_size, line_search_fn, reference);
    }
}
