# Builds the image. For this machine: docker buildx bake --file docker-bake.hcl
# For all platforms, with SBOM and provenance, into a registry: docker buildx bake --file docker-bake.hcl release --push

variable "VERSION" {
  default = "0.1.0"
}

# The commit.
variable "REVISION" {
  default = "unknown"
}

# The address of the repository.
variable "SOURCE" {
  default = ""
}

# The name of the image, with its registry.
variable "IMAGE" {
  default = "coxswain"
}

target "default" {
  context = "."
  args = {
    VERSION  = VERSION
    REVISION = REVISION
    SOURCE   = SOURCE
  }
  tags = ["${IMAGE}:${VERSION}"]
}

target "release" {
  inherits  = ["default"]
  platforms = ["linux/amd64", "linux/arm64"]
  attest    = ["type=sbom", "type=provenance,mode=max"]
  # A pre-release (1.0.0-rc.1) is not the latest.
  tags = length(split("-", VERSION)) > 1 ? ["${IMAGE}:${VERSION}"] : ["${IMAGE}:${VERSION}", "${IMAGE}:latest"]
}
