import ArgumentParser
import Foundation
import Storage

/// A file that a run's results go to; the end of its name says in which form.
struct ReportFile: ExpressibleByArgument, Hashable {
    enum Form: String, Hashable {
        case json, csv, html
    }

    let path: String
    let form: Form

    /// - Returns: nil where the name ends neither in `.json` nor in `.csv` nor in `.html`.
    init?(argument: String) {
        guard let dot = argument.lastIndex(of: "."),
            let form = Form(rawValue: argument[argument.index(after: dot)...].lowercased())
        else { return nil }
        path = argument
        self.form = form
    }

    /// What is written first; it takes the file's place when it is whole, so that a report of an earlier run is there until then.
    private var draft: String { path + ".draft" }

    /// Whether there is a terminal, a pipe or another thing by that name that cannot be replaced.
    private var isSpecial: Bool { isSpecialFile(at: path) }

    /// Makes the draft and removes it, so that a name that cannot be written is known before the run and not after it.
    /// - Throws: `CommandFailure` where it cannot be written.
    func check() throws(CommandFailure) {
        let descriptor = open(isSpecial ? path : draft, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw CommandFailure("\(path) cannot be written: \(String(cString: strerror(errno)))")
        }
        Foundation.close(descriptor)
        if !isSpecial { unlink(draft) }
    }

    /// - Throws: `CommandFailure` where it cannot be written; what was there before is still there then.
    func write(_ report: LoadReport) throws(CommandFailure) {
        let bytes: [UInt8] =
            switch form {
            case .json: report.json + Array("\n".utf8)
            case .csv: Array(report.csv.utf8)
            case .html: Array(report.html(date: Times.text(Times.now)).utf8)
            }
        do {
            let isSpecial = isSpecial
            try Data(bytes).write(to: URL(fileURLWithPath: isSpecial ? path : draft))
            if !isSpecial, rename(draft, path) != 0 { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        } catch {
            unlink(draft)
            throw CommandFailure("\(path) cannot be written: \(error.localizedDescription)")
        }
    }
}
