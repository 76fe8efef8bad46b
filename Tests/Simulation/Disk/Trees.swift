import Glibc
import Storage

/// Removes a folder with everything in it, as far as that goes.
func removeTree(_ path: String) {
    guard let names = try? listFolder(at: path) else { return }
    for name in names {
        let inner = "\(path)/\(name)"
        if unlink(inner) != 0 { removeTree(inner) }
    }
    rmdir(path)
}
