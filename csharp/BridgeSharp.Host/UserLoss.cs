using System.Reflection;
using static TorchSharp.torch;

namespace BridgeSharp.Host;

/// <summary>Finds a loss of the user's own: a static method of outputs and targets.</summary>
internal static class UserLoss
{
    /// <summary>Find the method.</summary>
    /// <param name="name">The full name of its type, a dot, and its own.</param>
    /// <param name="home">The user's assembly.</param>
    /// <returns>The loss.</returns>
    public static Func<Tensor, Tensor, Tensor> Find(string name, Assembly home)
    {
        var dot = name.LastIndexOf('.');
        var method = home.GetType(name[..dot])?.GetMethod(name[(dot + 1)..], BindingFlags.Public | BindingFlags.Static, [typeof(Tensor), typeof(Tensor)]);
        return method?.ReturnType == typeof(Tensor)
            ? method.CreateDelegate<Func<Tensor, Tensor, Tensor>>()
            : throw new ArgumentException($"trainer: expected a public static method Tensor (Tensor, Tensor) in {home.GetName().Name}, got {name}");
    }
}
