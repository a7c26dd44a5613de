using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Data;

/// <summary>One split of Fashion-MNIST, normalized as it is read out.</summary>
/// <remarks>Spec: R10.3, R10.4.</remarks>
public sealed class FashionMnist : IDataset, IDisposable
{
    private const string DebianFolder = "/usr/share/datasets/fashion-mnist";
    private const double Mean = 0.2860, Deviation = 0.3530;
    private const int Classes = 10, Side = 28;

    private readonly Tensor images, labels, grey;

    /// <summary>Read the images and labels of one split.</summary>
    /// <param name="folder">Holds the four IDX files, gzipped or not; null takes the folder of Debian's package.</param>
    /// <param name="train">The training split, else the test split.</param>
    /// <param name="dtype">Of the images that <see cref="batch"/> returns.</param>
    /// <exception cref="FileNotFoundException">A file is missing; the message says how to get the data.</exception>
    /// <exception cref="IdxException">A damaged file, or one of other contents than stated.</exception>
    public FashionMnist(string? folder, bool train, ScalarType dtype)
    {
        var stem = train ? "train" : "t10k";
        folder ??= DebianFolder;
        var imagePath = Find(folder, $"{stem}-images-idx3-ubyte");
        var labelPath = Find(folder, $"{stem}-labels-idx1-ubyte");
        images = Idx.read_idx(imagePath);
        using var bytes = Idx.read_idx(labelPath);
        labels = bytes.to(int64);
        Check(images, Path.GetFileName(imagePath), labels, Path.GetFileName(labelPath));
        using var values = tensor([.. Enumerable.Range(0, 256).Select(value => ((value / 255.0) - Mean) / Deviation)], dtype: float64);
        grey = values.to(dtype);
    }

    /// <summary>Count the samples.</summary>
    public long Count => labels.size(0);

    /// <summary>Read samples out, images <c>(N, 1, 28, 28)</c> normalized and labels <c>(N,)</c>.</summary>
    /// <remarks>Spec: R10.4.</remarks>
    /// <param name="indices">Which samples, int64 <c>(N,)</c>.</param>
    /// <returns>Fresh tensors.</returns>
    public (Tensor images, Tensor labels) batch(Tensor indices)
    {
        using var scope = NewDisposeScope();
        var points = images[indices].unsqueeze(1).to(int64);
        return scope.MoveToOuter(grey[points], labels[indices]);
    }

    /// <summary>Read samples out, for a loader.</summary>
    object IDataset.batch(Tensor indices) => batch(indices);

    /// <summary>Dispose the tensors.</summary>
    public void Dispose()
    {
        images.Dispose();
        labels.Dispose();
        grey.Dispose();
    }

    /// <summary>Find a file of the data set, gzipped or not.</summary>
    private static string Find(string folder, string name)
    {
        foreach (var path in new[] { Path.Combine(folder, $"{name}.gz"), Path.Combine(folder, name) })
        {
            if (File.Exists(path))
            {
                return path;
            }
        }

        throw new FileNotFoundException(
            $"FashionMnist: expected {name}[.gz] in {folder}, found none; install Debian's package " +
            "dataset-fashion-mnist, or download the four files of " +
            "https://github.com/zalandoresearch/fashion-mnist and name their folder with --data");
    }

    /// <summary>Refuse images and labels that do not belong together.</summary>
    private static void Check(Tensor images, string name, Tensor labels, string labelName)
    {
        if (images.dim() != 3 || images.size(1) != Side || images.size(2) != Side)
        {
            throw new IdxException(
                $"FashionMnist: expected images of {Side}x{Side} in {name}, got {string.Join('x', images.shape)}");
        }

        if (labels.dim() != 1 || labels.size(0) != images.size(0))
        {
            throw new IdxException(
                $"FashionMnist: expected {images.size(0)} labels in {labelName}, got {string.Join('x', labels.shape)}");
        }

        if (labels.size(0) > 0 && labels.max().item<long>() is var top and >= Classes)
        {
            throw new IdxException($"FashionMnist: expected labels below {Classes} in {labelName}, got {top}");
        }
    }
}
