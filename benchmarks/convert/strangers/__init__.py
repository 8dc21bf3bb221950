from .gpt import build_gpt
from .vq import build_vqvae
from .moe import build_moe
from .seq2seq import build_seq2seq
from .gnn import build_gnn
from .wave import build_wavenet, build_disc
from .detect import build_head
from .nerf import build_nerf
from .ssm import build_ssm
from .swin import build_swin
from .enc import build_encoder
from .misc import build_vae, build_ste, build_hyper, build_deform

__all__ = [n for n in dir() if n.startswith("build_")]
