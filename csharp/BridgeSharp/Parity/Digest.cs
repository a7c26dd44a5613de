using System.Security.Cryptography;
using System.Text;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parity;

/// <summary>Digests of tensors, the same in both languages.</summary>
public static class Digest
{
    /// <summary>Digest named tensors: their names, dtypes, shapes and bytes, in order.</summary>
    /// <remarks>Spec: R11.1.</remarks>
    /// <param name="tensors">Names and tensors of any device and layout.</param>
    /// <returns>A SHA-256 in hexadecimal digits.</returns>
    public static string digest(IEnumerable<KeyValuePair<string, Tensor>> tensors)
    {
        using var state = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
        foreach (var (name, tensor) in tensors)
        {
            var shape = string.Join(',', tensor.shape);
            state.AppendData(Encoding.UTF8.GetBytes($"{name}\0{dtype_name(tensor.dtype)}\0{shape}\0"));
            using var scope = NewDisposeScope();
            using var mode = no_grad();
            state.AppendData(tensor.detach().cpu().contiguous().bytes);
        }

        return Convert.ToHexStringLower(state.GetHashAndReset());
    }

    /// <summary>Name a dtype as both languages do: <c>float32</c>, <c>int64</c> and so on.</summary>
    /// <param name="dtype">The dtype.</param>
    /// <returns>PyTorch's name.</returns>
    public static string dtype_name(ScalarType dtype) => dtype switch
    {
        ScalarType.Byte => "uint8",
        ScalarType.Int8 => "int8",
        ScalarType.Int16 => "int16",
        ScalarType.Int32 => "int32",
        ScalarType.Int64 => "int64",
        ScalarType.Float16 => "float16",
        ScalarType.BFloat16 => "bfloat16",
        ScalarType.Float32 => "float32",
        ScalarType.Float64 => "float64",
        ScalarType.Bool => "bool",
        ScalarType.ComplexFloat32 => "complex64",
        ScalarType.ComplexFloat64 => "complex128",
        _ => throw new ArgumentException($"dtype_name: expected a dtype of PyTorch, got {dtype}"),
    };
}
