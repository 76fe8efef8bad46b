import RecordModel
import Service

/// `POST assets/upload` and `assets/rereference`: what gives the right to send files, and to save them again.
struct AssetRoutes {
    var service: RecordService
    var call: DatabaseCall

    private var assets: Assets { Assets(service, call.request) }

    /// Up to 200 URLs to upload files to.
    func upload() async throws(RequestFailure) -> Reply {
        let uploads = try await assets.uploads(try call.form(AssetsUploadRequest.self))
        return Reply { writer in
            writer.array("tokens") { writer in
                for upload in uploads {
                    writer.object { writer in
                        writer.member("recordName", upload.recordName)
                        writer.member("fieldName", upload.fieldName)
                        writer.member("url", upload.url)
                    }
                }
            }
        }
    }

    /// The dictionaries by which the assets of up to 200 records' fields can be saved in other records.
    func rereference() async throws(RequestFailure) -> Reply {
        let items = try await assets.rereference(try call.form(AssetsRereferenceRequest.self))
        return Reply { writer in
            writer.array("assets") { writer in
                for item in items {
                    switch item {
                    case .found(let dictionary): writer.value(dictionary)
                    case .failed(let recordName, let error): writer.recordError(recordName: recordName, error)
                    }
                }
            }
        }
    }
}
