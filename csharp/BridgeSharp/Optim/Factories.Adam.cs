using BridgeSharp.Optim;
using TorchSharp.Modules;
using Adam = BridgeSharp.Optim.Adam;
using Adamax = BridgeSharp.Optim.Adamax;
using AdamW = BridgeSharp.Optim.AdamW;
using NAdam = BridgeSharp.Optim.NAdam;
using RAdam = BridgeSharp.Optim.RAdam;

namespace BridgeSharp;

/// <content>Optimizers as <c>torch.optim</c> makes them, with PyTorch's formulas and defaults.</content>
public static partial class bridge
{
    /// <summary>Optimizers and schedulers under the names of <c>torch.optim</c>, with PyTorch's formulas and defaults.</summary>
    public static partial class optim
    {
        /// <inheritdoc cref="Adam.Adam(IEnumerable{Parameter}, double, double, double, double, double, bool, bool, bool, string)"/>
        public static Adam Adam(
            IEnumerable<Parameter> parameters,
            double lr = 1e-3, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
            bool amsgrad = false, bool maximize = false, bool decoupled_weight_decay = false, string reference = "2.10")
            => new(parameters, lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, decoupled_weight_decay, reference);

        /// <inheritdoc cref="Adam.Adam(IEnumerable{Parameter}, double, double, double, double, double, bool, bool, bool, string)"/>
        public static Adam Adam(
            IEnumerable<(string name, Parameter parameter)> parameters,
            double lr = 1e-3, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
            bool amsgrad = false, bool maximize = false, bool decoupled_weight_decay = false, string reference = "2.10")
            => new(Optimizer.Named(parameters, (own, names) => new Adam.ParamGroup(own) { param_names = names }), lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, decoupled_weight_decay, reference);

        /// <inheritdoc cref="Adam.Adam(IEnumerable{Parameter}, double, double, double, double, double, bool, bool, bool, string)"/>
        public static Adam Adam(
            IEnumerable<Adam.ParamGroup> parameters,
            double lr = 1e-3, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
            bool amsgrad = false, bool maximize = false, bool decoupled_weight_decay = false, string reference = "2.10")
            => new(parameters, lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, decoupled_weight_decay, reference);

        /// <inheritdoc cref="AdamW.AdamW(IEnumerable{Parameter}, double, double, double, double, double, bool, bool, string)"/>
        public static AdamW AdamW(
            IEnumerable<Parameter> parameters,
            double lr = 1e-3, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0.01,
            bool amsgrad = false, bool maximize = false, string reference = "2.10")
            => new(parameters, lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, reference);

        /// <inheritdoc cref="AdamW.AdamW(IEnumerable{Parameter}, double, double, double, double, double, bool, bool, string)"/>
        public static AdamW AdamW(
            IEnumerable<(string name, Parameter parameter)> parameters,
            double lr = 1e-3, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0.01,
            bool amsgrad = false, bool maximize = false, string reference = "2.10")
            => new(Optimizer.Named(parameters, (own, names) => new Adam.ParamGroup(own) { param_names = names }), lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, reference);

        /// <inheritdoc cref="AdamW.AdamW(IEnumerable{Parameter}, double, double, double, double, double, bool, bool, string)"/>
        public static AdamW AdamW(
            IEnumerable<Adam.ParamGroup> parameters,
            double lr = 1e-3, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0.01,
            bool amsgrad = false, bool maximize = false, string reference = "2.10")
            => new(parameters, lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, reference);

        /// <inheritdoc cref="Adamax.Adamax(IEnumerable{Parameter}, double, double, double, double, double, bool, string)"/>
        public static Adamax Adamax(
            IEnumerable<Parameter> parameters,
            double lr = 0.002, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
            bool maximize = false, string reference = "2.10")
            => new(parameters, lr, beta1, beta2, eps, weight_decay, maximize, reference);

        /// <inheritdoc cref="Adamax.Adamax(IEnumerable{Parameter}, double, double, double, double, double, bool, string)"/>
        public static Adamax Adamax(
            IEnumerable<(string name, Parameter parameter)> parameters,
            double lr = 0.002, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
            bool maximize = false, string reference = "2.10")
            => new(Optimizer.Named(parameters, (own, names) => new Adamax.ParamGroup(own) { param_names = names }), lr, beta1, beta2, eps, weight_decay, maximize, reference);

        /// <inheritdoc cref="Adamax.Adamax(IEnumerable{Parameter}, double, double, double, double, double, bool, string)"/>
        public static Adamax Adamax(
            IEnumerable<Adamax.ParamGroup> parameters,
            double lr = 0.002, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
            bool maximize = false, string reference = "2.10")
            => new(parameters, lr, beta1, beta2, eps, weight_decay, maximize, reference);

        /// <inheritdoc cref="NAdam.NAdam(IEnumerable{Parameter}, double, double, double, double, double, double, bool, bool, string)"/>
        public static NAdam NAdam(
            IEnumerable<Parameter> parameters,
            double lr = 0.002, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
            double momentum_decay = 0.004, bool decoupled_weight_decay = false, bool maximize = false,
            string reference = "2.10")
            => new(parameters, lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled_weight_decay, maximize, reference);

        /// <inheritdoc cref="NAdam.NAdam(IEnumerable{Parameter}, double, double, double, double, double, double, bool, bool, string)"/>
        public static NAdam NAdam(
            IEnumerable<(string name, Parameter parameter)> parameters,
            double lr = 0.002, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
            double momentum_decay = 0.004, bool decoupled_weight_decay = false, bool maximize = false,
            string reference = "2.10")
            => new(Optimizer.Named(parameters, (own, names) => new NAdam.ParamGroup(own) { param_names = names }), lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled_weight_decay, maximize, reference);

        /// <inheritdoc cref="NAdam.NAdam(IEnumerable{Parameter}, double, double, double, double, double, double, bool, bool, string)"/>
        public static NAdam NAdam(
            IEnumerable<NAdam.ParamGroup> parameters,
            double lr = 0.002, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
            double momentum_decay = 0.004, bool decoupled_weight_decay = false, bool maximize = false,
            string reference = "2.10")
            => new(parameters, lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled_weight_decay, maximize, reference);

        /// <inheritdoc cref="RAdam.RAdam(IEnumerable{Parameter}, double, double, double, double, double, bool, bool, string)"/>
        public static RAdam RAdam(
            IEnumerable<Parameter> parameters,
            double lr = 1e-3, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
            bool decoupled_weight_decay = false, bool maximize = false, string reference = "2.10")
            => new(parameters, lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize, reference);

        /// <inheritdoc cref="RAdam.RAdam(IEnumerable{Parameter}, double, double, double, double, double, bool, bool, string)"/>
        public static RAdam RAdam(
            IEnumerable<(string name, Parameter parameter)> parameters,
            double lr = 1e-3, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
            bool decoupled_weight_decay = false, bool maximize = false, string reference = "2.10")
            => new(Optimizer.Named(parameters, (own, names) => new RAdam.ParamGroup(own) { param_names = names }), lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize, reference);

        /// <inheritdoc cref="RAdam.RAdam(IEnumerable{Parameter}, double, double, double, double, double, bool, bool, string)"/>
        public static RAdam RAdam(
            IEnumerable<RAdam.ParamGroup> parameters,
            double lr = 1e-3, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
            bool decoupled_weight_decay = false, bool maximize = false, string reference = "2.10")
            => new(parameters, lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize, reference);
    }
}
