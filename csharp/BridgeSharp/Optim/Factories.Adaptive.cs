using BridgeSharp.Optim;
using TorchSharp.Modules;
using RMSProp = BridgeSharp.Optim.RMSProp;
using Adagrad = BridgeSharp.Optim.Adagrad;
using Adadelta = BridgeSharp.Optim.Adadelta;

namespace BridgeSharp;

/// <content>Optimizers as <c>torch.optim</c> makes them, with PyTorch's formulas and defaults.</content>
public static partial class bridge
{
    /// <summary>Optimizers and schedulers under the names of <c>torch.optim</c>, with PyTorch's formulas and defaults.</summary>
    public static partial class optim
    {
        /// <inheritdoc cref="RMSProp.RMSProp(IEnumerable{Parameter}, double, double, double, double, double, bool, bool, string)"/>
        public static RMSProp RMSProp(
            IEnumerable<Parameter> parameters,
            double lr = 0.01, double alpha = 0.99, double eps = 1e-8, double weight_decay = 0, double momentum = 0,
            bool centered = false, bool maximize = false, string reference = "2.10")
            => new(parameters, lr, alpha, eps, weight_decay, momentum, centered, maximize, reference);

        /// <inheritdoc cref="RMSProp.RMSProp(IEnumerable{Parameter}, double, double, double, double, double, bool, bool, string)"/>
        public static RMSProp RMSProp(
            IEnumerable<(string name, Parameter parameter)> parameters,
            double lr = 0.01, double alpha = 0.99, double eps = 1e-8, double weight_decay = 0, double momentum = 0,
            bool centered = false, bool maximize = false, string reference = "2.10")
            => new(Optimizer.Named(parameters, (own, names) => new RMSProp.ParamGroup(own) { param_names = names }), lr, alpha, eps, weight_decay, momentum, centered, maximize, reference);

        /// <inheritdoc cref="RMSProp.RMSProp(IEnumerable{Parameter}, double, double, double, double, double, bool, bool, string)"/>
        public static RMSProp RMSProp(
            IEnumerable<RMSProp.ParamGroup> parameters,
            double lr = 0.01, double alpha = 0.99, double eps = 1e-8, double weight_decay = 0, double momentum = 0,
            bool centered = false, bool maximize = false, string reference = "2.10")
            => new(parameters, lr, alpha, eps, weight_decay, momentum, centered, maximize, reference);

        /// <inheritdoc cref="Adagrad.Adagrad(IEnumerable{Parameter}, double, double, double, double, double, bool, string)"/>
        public static Adagrad Adagrad(
            IEnumerable<Parameter> parameters,
            double lr = 0.01, double lr_decay = 0, double weight_decay = 0, double initial_accumulator_value = 0,
            double eps = 1e-10, bool maximize = false, string reference = "2.10")
            => new(parameters, lr, lr_decay, weight_decay, initial_accumulator_value, eps, maximize, reference);

        /// <inheritdoc cref="Adagrad.Adagrad(IEnumerable{Parameter}, double, double, double, double, double, bool, string)"/>
        public static Adagrad Adagrad(
            IEnumerable<(string name, Parameter parameter)> parameters,
            double lr = 0.01, double lr_decay = 0, double weight_decay = 0, double initial_accumulator_value = 0,
            double eps = 1e-10, bool maximize = false, string reference = "2.10")
            => new(Optimizer.Named(parameters, (own, names) => new Adagrad.ParamGroup(own) { param_names = names }), lr, lr_decay, weight_decay, initial_accumulator_value, eps, maximize, reference);

        /// <inheritdoc cref="Adagrad.Adagrad(IEnumerable{Parameter}, double, double, double, double, double, bool, string)"/>
        public static Adagrad Adagrad(
            IEnumerable<Adagrad.ParamGroup> parameters,
            double lr = 0.01, double lr_decay = 0, double weight_decay = 0, double initial_accumulator_value = 0,
            double eps = 1e-10, bool maximize = false, string reference = "2.10")
            => new(parameters, lr, lr_decay, weight_decay, initial_accumulator_value, eps, maximize, reference);

        /// <inheritdoc cref="Adadelta.Adadelta(IEnumerable{Parameter}, double, double, double, double, bool, string)"/>
        public static Adadelta Adadelta(
            IEnumerable<Parameter> parameters,
            double lr = 1.0, double rho = 0.9, double eps = 1e-6, double weight_decay = 0, bool maximize = false,
            string reference = "2.10")
            => new(parameters, lr, rho, eps, weight_decay, maximize, reference);

        /// <inheritdoc cref="Adadelta.Adadelta(IEnumerable{Parameter}, double, double, double, double, bool, string)"/>
        public static Adadelta Adadelta(
            IEnumerable<(string name, Parameter parameter)> parameters,
            double lr = 1.0, double rho = 0.9, double eps = 1e-6, double weight_decay = 0, bool maximize = false,
            string reference = "2.10")
            => new(Optimizer.Named(parameters, (own, names) => new Adadelta.ParamGroup(own) { param_names = names }), lr, rho, eps, weight_decay, maximize, reference);

        /// <inheritdoc cref="Adadelta.Adadelta(IEnumerable{Parameter}, double, double, double, double, bool, string)"/>
        public static Adadelta Adadelta(
            IEnumerable<Adadelta.ParamGroup> parameters,
            double lr = 1.0, double rho = 0.9, double eps = 1e-6, double weight_decay = 0, bool maximize = false,
            string reference = "2.10")
            => new(parameters, lr, rho, eps, weight_decay, maximize, reference);
    }
}
